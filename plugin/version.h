// The version of this library, as nodes compare it; CMakeLists.txt reads it from here.
#pragma once

#include <cstdint>

namespace riffle {

inline constexpr char kVersion[] = "0.2.0";
inline constexpr std::uint32_t kPluginVersion = 0 << 16 | 2 << 8 | 0;  // the same, for handles

}  // namespace riffle
