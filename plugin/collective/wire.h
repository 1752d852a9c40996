// What the engine puts into a FrameHeader:
//   seq     sequence number of the chunk       key     level, final bit, index of the group
//   offset  first element of the payload       total   elements of the chunk
//   flags   datatype, operator, collective     length  bytes of the payload
#pragma once

#include <cstdint>

#include "plugin/collective/operation.h"

namespace riffle {

// The level of reduce-scatter and all-gather, whose one group no plan contains.
inline constexpr int kBlocksLevel = 255;

inline constexpr std::uint32_t kFinalBit = 1u << 23;
inline std::uint32_t frame_key(int level, int index, bool is_final) {
  return static_cast<std::uint32_t>(level) << 24 | (is_final ? kFinalBit : 0) |
         static_cast<std::uint32_t>(index);
}
inline int level_of(std::uint32_t key) { return static_cast<int>(key >> 24); }
inline bool is_final(std::uint32_t key) { return (key & kFinalBit) != 0; }
inline int index_of(std::uint32_t key) { return static_cast<int>(key & (kFinalBit - 1)); }

// Nodes that disagree about what they are doing find out by these.
inline std::uint16_t frame_flags(const Operation& o) {
  return static_cast<std::uint16_t>(static_cast<int>(o.type) | static_cast<int>(o.op) << 4 |
                                    static_cast<int>(o.collective) << 8);
}
inline Collective collective_of(std::uint16_t flags) { return static_cast<Collective>(flags >> 8); }

}  // namespace riffle
