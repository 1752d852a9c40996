// How long is left until a deadline, as poll() takes it: 0 when it has passed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace riffle::tools {

inline int left_ms(std::chrono::steady_clock::time_point deadline) {
  using std::chrono::milliseconds;
  const auto left = deadline - std::chrono::steady_clock::now();
  const std::int64_t ms = std::chrono::duration_cast<milliseconds>(left).count();
  return static_cast<int>(std::max<std::int64_t>(ms, 0));
}

}  // namespace riffle::tools
