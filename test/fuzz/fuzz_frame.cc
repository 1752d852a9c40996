// Frame headers from the wire. A random header fails its checksum, so each is tried twice: as it
// came, and with the checksum put right, which is what a hostile sender would do.
#include <algorithm>
#include <cstring>

#include "plugin/transport/base/frame.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

void try_header(const FrameBytes& bytes) {
  const Result<FrameHeader> header = decode(bytes);
  if (!header) {
    require(!header.status().message().empty(), "refused without a reason");
    return;
  }
  require(header->length <= kMaxFramePayload, "accepted an oversized payload");
  const auto type = static_cast<unsigned>(header->type);
  require(type >= 1 && type <= static_cast<unsigned>(FrameType::kLength),
          "accepted an unknown type");
  const Result<FrameHeader> again = decode(encode(*header));
  require(again.is_ok() && again->type == header->type && again->length == header->length &&
              again->seq == header->seq && again->communicator == header->communicator &&
              again->offset == header->offset && again->total == header->total &&
              again->key == header->key && again->credits == header->credits,
          "does not survive another trip over the wire");
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const FrameType type : {FrameType::kData, FrameType::kHeartbeat, FrameType::kProbe}) {
    const FrameBytes bytes = encode(FrameHeader{.type = type, .seq = 7, .length = 4096});
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
