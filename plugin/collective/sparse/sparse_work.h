// SparseWork: what a communicator's sparse exchanges have sent, and where their time went.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace riffle {

// Totals since the communicator began. The reactor writes, any thread reads.
struct SparseWork {
  std::atomic<std::uint64_t> segments{0}, redone{0};
  std::atomic<std::uint64_t> elements{0};                        // of all segments
  std::atomic<std::uint64_t> messages{0}, entries{0}, bytes{0};  // sent
  // Of this thread: adding, selecting, summing; writing results.
  std::atomic<std::uint64_t> select_ns{0}, memory_ns{0};
  std::atomic<std::uint64_t> span_ns{0};  // in which any segment was under way
};
// One human-readable line; empty if there was none.
std::string describe(const SparseWork& work);

inline void add_to(std::atomic<std::uint64_t>& total, std::uint64_t n) {
  total.fetch_add(n, std::memory_order_relaxed);
}

}  // namespace riffle
