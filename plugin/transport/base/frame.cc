#include "plugin/transport/base/frame.h"

#include <algorithm>

#include "plugin/transport/base/wire.h"

namespace riffle {
namespace {

// Offsets of the fields; frame.h says what they mean.
enum : std::size_t {
  kMagicAt = 0,
  kVersionAt = 4,
  kTypeAt = 5,
  kTermAt = 6,
  kCommunicatorAt = 8,
  kLengthAt = 16,
  kPayloadCrcAt = 20,
  kHintsAt =
      24,  // bit 0: receiver_is_slow, 1: sender_is_full, 2: sender_is_shared; others are zero
  kBodyAt = 28,
  kHeaderCrcAt = 60,
};
static_assert(kBodyAt + kFrameBodyBytes == kHeaderCrcAt);

}  // namespace

FrameBytes encode(const FrameHeader& header) {
  FrameBytes bytes;
  put(&bytes[kMagicAt], kFrameMagic);
  put(&bytes[kVersionAt], kFrameVersion);
  put(&bytes[kTypeAt], static_cast<std::uint8_t>(header.type));
  put(&bytes[kTermAt], header.term);
  put(&bytes[kCommunicatorAt], header.communicator);
  put(&bytes[kLengthAt], header.length);
  put(&bytes[kPayloadCrcAt], header.payload_crc);
  put(&bytes[kHintsAt], std::uint32_t{header.hints.receiver_is_slow} |
                            std::uint32_t{header.hints.sender_is_full} << 1 |
                            std::uint32_t{header.hints.sender_is_shared} << 2);
  std::copy(header.body.begin(), header.body.end(), &bytes[kBodyAt]);
  put(&bytes[kHeaderCrcAt], crc32c(bytes.data(), kHeaderCrcAt));
  return bytes;
}

Result<FrameHeader> decode(const FrameBytes& bytes) {
  if (get<std::uint32_t>(&bytes[kMagicAt]) != kFrameMagic) {
    return remote_error("not a frame of Riffle (wrong magic number)");
  }
  if (bytes[kVersionAt] != kFrameVersion) {
    return remote_error("frame version " + std::to_string(bytes[kVersionAt]) +
                        ", this side speaks version " + std::to_string(kFrameVersion) +
                        ": install the same version on all nodes");
  }
  if (get<std::uint32_t>(&bytes[kHeaderCrcAt]) != crc32c(bytes.data(), kHeaderCrcAt)) {
    return remote_error("frame header damaged (CRC32C does not match)");
  }
  FrameHeader header;
  const std::uint8_t type = bytes[kTypeAt];
  if (type < static_cast<std::uint8_t>(FrameType::kData) ||
      type > static_cast<std::uint8_t>(kLastFrameType)) {
    return remote_error("unknown frame type " + std::to_string(type));
  }
  header.type = static_cast<FrameType>(type);
  header.term = get<std::uint16_t>(&bytes[kTermAt]);
  header.communicator = get<std::uint64_t>(&bytes[kCommunicatorAt]);
  header.length = get<std::uint32_t>(&bytes[kLengthAt]);
  header.payload_crc = get<std::uint32_t>(&bytes[kPayloadCrcAt]);
  const auto hints = get<std::uint32_t>(&bytes[kHintsAt]);
  header.hints = {(hints & 1) != 0, (hints & 2) != 0, (hints & 4) != 0};
  std::copy_n(&bytes[kBodyAt], header.body.size(), header.body.begin());
  if (header.length > kMaxFramePayload) {
    return remote_error("frame of " + std::to_string(header.length) + " payload bytes, at most " +
                        std::to_string(kMaxFramePayload) + " are allowed");
  }
  return header;
}

}  // namespace riffle
