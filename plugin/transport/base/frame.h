// The header in front of every payload on the wire. 64 bytes, little-endian, CRC32C over the first
// 60. What `seq`, `key`, `offset` and `total` mean is the business of whoever sends the frame (the
// collective engine, NET); the transport only looks at type, length and the two checks.
//
// Lengths and numbers from the wire are never trusted: decode() checks magic, version, CRC and
// length; the receiver checks the rest against what it expects before a payload byte is stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "topology/base/status.h"

namespace riffle {

inline constexpr std::uint32_t kFrameMagic = 0x314c4652;     // "RFL1"
inline constexpr std::uint8_t kFrameVersion = 3;             // a change of meaning changes this
inline constexpr std::uint32_t kMaxFramePayload = 4u << 20;  // bytes

enum class FrameType : std::uint8_t {
  kData = 1,       // payload for whoever owns the mesh or connection
  kControl = 2,    // small messages of connect: tables, plans, agreement
  kHeartbeat = 3,  // says "alive", nothing else; handled by the transport
  kGoodbye = 4,    // the sender closes on purpose; handled by the transport
  kCredit = 5,     // only the credit fields mean something
  kPosted = 6,     // NET: a receive was posted (tag, capacity)
  kFault = 7,      // a node was lost or failed; payload: a sentence naming it
  kProbe = 8,  // active probing of the network during connect (collective/connect/probe_flows.h)
  kDone = 9,   // operations that some, or all, nodes have finished (collective/elastic/survivors.h)
  kSparse = 10,  // a message of a sparse exchange (collective/sparse/sparse_runner.h)
  kLength =
      11,  // asks, or tells, how many elements of a call are valid (collective/engine/lengths.h)
};

// What the sender of a frame says of the link, for measuring (topology/probe/passive.h).
struct RateHints {
  bool receiver_is_slow = false;  // what the sender has for this receiver waits for it
  bool sender_is_full = false;    // the sender receives as much as its own link takes
  bool operator==(const RateHints&) const = default;
};

struct FrameHeader {
  FrameType type = FrameType::kData;
  std::uint16_t flags = 0;
  std::uint64_t communicator = 0;  // nonce of the communicator; a frame of another one is refused
  std::uint64_t seq = 0;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::uint32_t key = 0;
  std::uint32_t length = 0;        // payload bytes that follow, <= kMaxFramePayload
  std::uint16_t credit_class = 0;  // flow control: `credits` frames of this class may follow
  std::uint16_t credits = 0;
  std::uint32_t payload_crc = 0;  // CRC32C of the payload if RIFFLE_PAYLOAD_CRC, else 0
  RateHints hints;
};

inline constexpr std::size_t kFrameHeaderBytes = 64;
using FrameBytes = std::array<std::uint8_t, kFrameHeaderBytes>;

FrameBytes encode(const FrameHeader& header);
Result<FrameHeader> decode(const FrameBytes& bytes);

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t seed = 0);

}  // namespace riffle
