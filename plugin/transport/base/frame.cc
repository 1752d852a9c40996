#include "plugin/transport/base/frame.h"

#include "plugin/transport/base/wire.h"

namespace riffle {
namespace {

// Offsets of the fields; frame.h says what they mean.
enum : std::size_t {
  kMagicAt = 0,
  kVersionAt = 4,
  kTypeAt = 5,
  kFlagsAt = 6,
  kCommunicatorAt = 8,
  kSeqAt = 16,
  kOffsetAt = 24,
  kTotalAt = 32,
  kKeyAt = 40,
  kLengthAt = 44,
  kCreditClassAt = 48,
  kCreditsAt = 50,
  kPayloadCrcAt = 52,
  kHintsAt = 56,  // bit 0: receiver_is_slow, 1: sender_is_full; the others are zero
  kHeaderCrcAt = 60,
};

}  // namespace

FrameBytes encode(const FrameHeader& header) {
  FrameBytes bytes;
  put(&bytes[kMagicAt], kFrameMagic);
  put(&bytes[kVersionAt], kFrameVersion);
  put(&bytes[kTypeAt], static_cast<std::uint8_t>(header.type));
  put(&bytes[kFlagsAt], header.flags);
  put(&bytes[kCommunicatorAt], header.communicator);
  put(&bytes[kSeqAt], header.seq);
  put(&bytes[kOffsetAt], header.offset);
  put(&bytes[kTotalAt], header.total);
  put(&bytes[kKeyAt], header.key);
  put(&bytes[kLengthAt], header.length);
  put(&bytes[kCreditClassAt], header.credit_class);
  put(&bytes[kCreditsAt], header.credits);
  put(&bytes[kPayloadCrcAt], header.payload_crc);
  put(&bytes[kHintsAt], std::uint32_t{header.hints.receiver_is_slow} |
                            std::uint32_t{header.hints.sender_is_full} << 1);
  put(&bytes[kHeaderCrcAt], crc32c(bytes.data(), kHeaderCrcAt));
  return bytes;
}

Result<FrameHeader> decode(const FrameBytes& bytes) {
  if (get<std::uint32_t>(&bytes[kMagicAt]) != kFrameMagic) {
    return remote_error("not a frame of Riffle (wrong magic number)");
  }
  if (bytes[kVersionAt] != kFrameVersion) {
    return remote_error("frame version " + std::to_string(bytes[kVersionAt]) +
                        ", this side speaks version " + std::to_string(kFrameVersion));
  }
  if (get<std::uint32_t>(&bytes[kHeaderCrcAt]) != crc32c(bytes.data(), kHeaderCrcAt)) {
    return remote_error("frame header damaged (CRC32C does not match)");
  }
  FrameHeader header;
  const std::uint8_t type = bytes[kTypeAt];
  if (type < static_cast<std::uint8_t>(FrameType::kData) ||
      type > static_cast<std::uint8_t>(FrameType::kLength)) {
    return remote_error("unknown frame type " + std::to_string(type));
  }
  header.type = static_cast<FrameType>(type);
  header.flags = get<std::uint16_t>(&bytes[kFlagsAt]);
  header.communicator = get<std::uint64_t>(&bytes[kCommunicatorAt]);
  header.seq = get<std::uint64_t>(&bytes[kSeqAt]);
  header.offset = get<std::uint64_t>(&bytes[kOffsetAt]);
  header.total = get<std::uint64_t>(&bytes[kTotalAt]);
  header.key = get<std::uint32_t>(&bytes[kKeyAt]);
  header.length = get<std::uint32_t>(&bytes[kLengthAt]);
  header.credit_class = get<std::uint16_t>(&bytes[kCreditClassAt]);
  header.credits = get<std::uint16_t>(&bytes[kCreditsAt]);
  header.payload_crc = get<std::uint32_t>(&bytes[kPayloadCrcAt]);
  const auto hints = get<std::uint32_t>(&bytes[kHintsAt]);
  header.hints = {(hints & 1) != 0, (hints & 2) != 0};
  if (header.length > kMaxFramePayload) {
    return remote_error("frame of " + std::to_string(header.length) + " payload bytes, at most " +
                        std::to_string(kMaxFramePayload) + " are allowed");
  }
  return header;
}

}  // namespace riffle
