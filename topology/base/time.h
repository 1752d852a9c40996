// Times are 64-bit counts of nanoseconds.
#pragma once

#include <cstdint>

namespace riffle {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr std::uint64_t kMillisecond = kSecond / 1000;

}  // namespace riffle
