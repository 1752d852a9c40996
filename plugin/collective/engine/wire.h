// What the engine puts into a FrameHeader:
//   seq     sequence number of the chunk       key     level, final bit, index of the group
//   offset  first element of the payload       total   elements of the chunk
//   flags   datatype, operator, collective,    length  bytes of the payload
//           generation (lowest bits)
//   credit_class  0 for an exact sum, else 1 + the step of the relaxed groups
// A credit frame's seq is the whole number of its generation. A frame about a length has the chunk
// in seq, the elements in offset, and what it is in key (lengths.h).
#pragma once

#include <cstdint>

#include "plugin/collective/engine/operation.h"

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

// The low bits of a generation's number, enough to tell the few that live at one time apart.
inline constexpr std::uint64_t kGenerationMask = 15;

// Nodes that disagree about what they are doing find out by these.
inline std::uint16_t frame_flags(const Operation& o, std::uint64_t generation) {
  return static_cast<std::uint16_t>(static_cast<int>(o.type) | static_cast<int>(o.op) << 4 |
                                    static_cast<int>(o.collective) << 8 |
                                    static_cast<int>(generation & kGenerationMask) << 12);
}
inline std::uint64_t generation_bits(std::uint16_t flags) { return flags >> 12; }

}  // namespace riffle
