// The header in front of every payload on the wire. 64 bytes, little-endian, CRC32C over the first
// 60. The transport looks at type, length and the two checks only; the body says the rest, by the
// struct of its type, which lies with those who send it (DataFrame, CreditFrame, ...):
//
//   struct SomeFrame {
//     static constexpr FrameType kType = ...;
//     ...                                        what it says
//     FrameBody encode() const;
//     static SomeFrame decode(const FrameBody& body);  whatever the bytes; its owner checks values
//   };
//
// Lengths and numbers from the wire are never trusted: decode() checks magic, version, CRC and
// length; the receiver checks the rest before a payload byte is stored, or keeps it in a slot until
// it has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/transport/base/wire.h"
#include "topology/base/status.h"

namespace riffle {

inline constexpr std::uint32_t kFrameMagic = 0x314c4652;     // "RFL1"
inline constexpr std::uint8_t kFrameVersion = 8;             // of all on the wire: test/compat
inline constexpr std::uint32_t kMaxFramePayload = 4u << 20;  // bytes

enum class FrameType : std::uint8_t {
  kData = 1,       // part of a collective's sums (collective/engine/wire.h)
  kControl = 2,    // part of a message (collective/base/control_channel.h)
  kHeartbeat = 3,  // says "alive", nothing else; handled by the transport
  kGoodbye = 4,    // the sender closes on purpose; handled by the transport
  kCredit = 5,     // room for partial sums (collective/engine/wire.h)
  kPosted = 6,     // NET: a receive was posted (net/net_frames.h)
  kFault = 7,      // a node was lost or failed; payload: a sentence naming it
  kProbe = 8,      // active probing during connect (collective/connect/probe_flows.h)
  kDone = 9,       // operations that nodes have finished (collective/elastic/survivors.h)
  kSparse = 10,    // part of a sparse exchange (collective/sparse/sparse_frames.h)
  kLength = 11,    // how many elements of a call are valid (collective/engine/wire.h)
  kMessage = 12,   // NET: part of a message (net/net_frames.h)
  kLibrary = 13,   // how far another library's connections are (nccl_net/library_frame.h)
  kJoin = 14,      // a communicator comes to a link that is up (tcp/join_frames.h); as kHeartbeat
  kLeave = 15,     // ... and leaves it; as kHeartbeat
};
inline constexpr FrameType kLastFrameType = FrameType::kLeave;

// What the sender of a frame says of the link, for measuring (topology/probe/passive.h).
struct RateHints {
  bool receiver_is_slow = false;  // what the sender has for this receiver waits for it
  bool sender_is_full = false;    // the sender receives as much as its own link takes
  bool sender_is_shared = false;  // ... but only with what others of its node receive
  bool operator==(const RateHints&) const = default;
};

inline constexpr std::size_t kFrameBodyBytes = 32;
using FrameBody = std::array<std::uint8_t, kFrameBodyBytes>;

struct FrameHeader {
  FrameType type = FrameType::kData;
  std::uint16_t term = 0;          // mark of the survivors' term (collective/elastic); 0: none
  std::uint64_t communicator = 0;  // nonce of the communicator; a frame of another one is refused
  std::uint32_t length = 0;        // payload bytes that follow, <= kMaxFramePayload
  std::uint32_t payload_crc = 0;   // CRC32C of the payload if RIFFLE_PAYLOAD_CRC, else 0
  RateHints hints;
  FrameBody body{};
};

inline constexpr std::size_t kFrameHeaderBytes = 64;
using FrameBytes = std::array<std::uint8_t, kFrameHeaderBytes>;

FrameBytes encode(const FrameHeader& header);
Result<FrameHeader> decode(const FrameBytes& bytes);

// For encode() and decode(): unsigned numbers, one behind the other; what they leave is zero.
template <class... T>
FrameBody pack(T... values) {
  static_assert((sizeof(T) + ...) <= kFrameBodyBytes);
  FrameBody body{};
  put_fields(body.data(), values...);
  return body;
}
template <class... T>
void unpack(const FrameBody& body, T&... values) {
  static_assert((sizeof(T) + ...) <= kFrameBodyBytes);
  get_fields(body.data(), values...);
}

// The header of a frame of `length` payload bytes.
template <class Frame>
FrameHeader header_of(const Frame& frame, std::size_t length = 0) {
  FrameHeader header;
  header.type = Frame::kType;
  header.length = static_cast<std::uint32_t>(length);
  header.body = frame.encode();
  return header;
}

// Precondition: the header is of this type.
template <class Frame>
Frame frame_of(const FrameHeader& header) {
  return Frame::decode(header.body);
}

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t seed = 0);

}  // namespace riffle
