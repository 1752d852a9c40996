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

// Collectives that ran, about. Jobs that queue many ahead have all of them counted before the first
// one runs; until more are counted, so many operations are taken for one. One owner.
class CollectiveProgress {
 public:
  static constexpr std::uint64_t kOperations = 16;  // e.g. of 1 MiB in a sum of 16 MiB

  std::uint64_t update(std::uint64_t collectives, std::uint64_t operations) {
    if (collectives != counted_) {
      counted_ = collectives;
      operations_ = operations;
      return begin_ = last_ = last_ + 1;
    }
    return last_ = begin_ + (operations - operations_) / kOperations;
  }

 private:
  std::uint64_t counted_ = 0, operations_ = 0;  // when one was last counted
  std::uint64_t begin_ = 0, last_ = 0;
};

}  // namespace riffle
