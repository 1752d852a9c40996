// Collectives that this process steered to group plans, over all communicators: what replanning
// intervals count. Calls of COLLNET do not count collectives (one of 32 MiB is many calls), the
// tuner sees each once. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace riffle {

namespace detail {
inline std::atomic<std::uint64_t> collectives{0};
}

inline void count_collective() { detail::collectives.fetch_add(1, std::memory_order_relaxed); }
// 0 as long as no tuner ran.
inline std::uint64_t counted_collectives() {
  return detail::collectives.load(std::memory_order_relaxed);
}

}  // namespace riffle
