// Frame headers from the wire. A random header fails its checksum, so each is tried twice: as it
// came, and with the checksum put right, which is what a hostile sender would do.
#include <algorithm>
#include <cstring>

#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/connect/probe_frame.h"
#include "plugin/collective/elastic/done_frame.h"
#include "plugin/collective/engine/wire.h"
#include "plugin/collective/sparse/sparse_frame.h"
#include "plugin/net/net_frames.h"
#include "plugin/transport/base/frame.h"
#include "plugin/transport/nccl_net/library_frame.h"
#include "plugin/transport/tcp/join_frames.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

template <class Frame>
void try_body_as(const FrameHeader& header) {
  if (header.type != Frame::kType) return;
  const FrameBody once = frame_of<Frame>(header).encode();
  require(Frame::decode(once).encode() == once, "a body says something else the second time");
}

void try_body(const FrameHeader& header) {
  try_body_as<DataFrame>(header);
  try_body_as<CreditFrame>(header);
  try_body_as<LengthFrame>(header);
  try_body_as<ControlFrame>(header);
  try_body_as<ProbeFrame>(header);
  try_body_as<DoneFrame>(header);
  try_body_as<SparseFrame>(header);
  try_body_as<net::PostedFrame>(header);
  try_body_as<net::MessageFrame>(header);
  try_body_as<JoinFrame>(header);
  try_body_as<LeaveFrame>(header);
  try_body_as<nccl_net::LibraryFrame>(header);
}

void try_header(const FrameBytes& bytes) {
  const Result<FrameHeader> header = decode(bytes);
  if (!header) {
    require(!header.status().message().empty(), "refused without a reason");
    return;
  }
  require(header->length <= kMaxFramePayload, "accepted an oversized payload");
  const auto type = static_cast<unsigned>(header->type);
  require(type >= 1 && type <= static_cast<unsigned>(kLastFrameType), "accepted an unknown type");
  const Result<FrameHeader> again = decode(encode(*header));
  require(again.is_ok() && again->type == header->type && again->length == header->length &&
              again->term == header->term && again->communicator == header->communicator &&
              again->payload_crc == header->payload_crc && again->body == header->body,
          "does not survive another trip over the wire");
  try_body(*header);
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (unsigned type = 1; type <= static_cast<unsigned>(kLastFrameType); ++type) {
    FrameHeader header = {.type = static_cast<FrameType>(type), .length = 4096};
    header.body.fill(static_cast<std::uint8_t>(type));
    const FrameBytes bytes = encode(header);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

void try_input(std::span<const std::uint8_t> input) {
  FrameBytes bytes{};
  std::copy_n(input.begin(), std::min(input.size(), bytes.size()), bytes.begin());
  try_header(bytes);
  constexpr std::size_t kCrcAt = kFrameHeaderBytes - sizeof(std::uint32_t);
  const std::uint32_t crc = crc32c(bytes.data(), kCrcAt);
  std::memcpy(bytes.data() + kCrcAt, &crc, sizeof crc);
  try_header(bytes);
}

}  // namespace riffle::fuzz
