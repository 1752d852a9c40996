// Sizes beyond which a plan is refused: generous for any real cluster, small enough that a plan
// from the wire cannot make a node allocate without bound. A ring or direct plan has one level,
// halving- doubling at most 17.
#pragma once

#include <cstddef>
#include <cstdint>

#include "topology/fabric/fabric.h"

namespace riffle {

inline constexpr std::size_t kMaxPlanLevels = 32;
inline constexpr std::size_t kMaxPlanLanes = 64;
inline constexpr std::size_t kMaxPlanName = 255;  // bytes
inline constexpr std::size_t kMaxRelaxedSteps = 256;

inline constexpr std::uint32_t kLeastPlanChunk = 4096;      // bytes
inline constexpr std::uint32_t kMostSmallBytes = 64 << 10;  // what counts as a small sum

}  // namespace riffle
