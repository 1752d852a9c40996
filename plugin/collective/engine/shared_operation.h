// SharedOperation: an operation of which several engines, each on a thread of its own, run a part.
// It is over when all parts are, as failed if any of them failed.
//
// Threads: begin() on the poster's; part_over() on each engine's, once.
#pragma once

#include <atomic>

#include "plugin/collective/engine/operation.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {

class SharedOperation {
 public:
  bool is_free() const { return left_.load(std::memory_order_acquire) == 0; }
  std::uint64_t ended_ns() const { return ended_ns_; }  // once it is free

  // Precondition: is_free(). `clock` must outlive it.
  void begin(Operation* whole, int parts, const Mesh* clock) {
    whole_ = whole;
    clock_ = clock;
    has_failed_.store(false, std::memory_order_relaxed);
    left_.store(parts + 1, std::memory_order_release);  // one more: not free while it is ended
  }
  void part_over(Operation::State outcome) {
    if (outcome == Operation::State::kFailed) has_failed_.store(true, std::memory_order_relaxed);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 2) return;
    ended_ns_ = clock_->now_ns();
    whole_->end(has_failed_.load(std::memory_order_relaxed) ? Operation::State::kFailed
                                                            : Operation::State::kDone);
    left_.store(0, std::memory_order_release);
  }

 private:
  Operation* whole_ = nullptr;
  const Mesh* clock_ = nullptr;
  std::uint64_t ended_ns_ = 0;
  std::atomic<int> left_{0};
  std::atomic<bool> has_failed_{false};
};

}  // namespace riffle
