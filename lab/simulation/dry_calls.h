// DryCalls: all-reduces as NCCL posts them, without numbers (Operation::is_dry): the buffer is cut
// into calls of at most call_bytes, at most `outstanding` of them at once, and the next one is
// posted when the oldest is done.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plugin/collective/engine/operation.h"

namespace riffle::sim {

class DryCalls {
 public:
  DryCalls(std::uint64_t call_bytes, int outstanding, std::function<void(Operation*)> submit);

  // Begins an all-reduce of so many bytes; the one before it must be finished.
  void begin(std::uint64_t bytes);
  // Takes what is done and posts what may be posted. Call it whenever something may have ended.
  void progress();
  bool is_finished() const { return next_byte_ == bytes_ && done_ == posted_; }

 private:
  Operation& at(std::uint64_t call) { return operations_[call % operations_.size()]; }
  void post();

  const std::uint64_t call_bytes_;
  const std::function<void(Operation*)> submit_;
  std::vector<Operation> operations_;
  std::uint64_t bytes_ = 0, next_byte_ = 0, posted_ = 0, done_ = 0;
};

}  // namespace riffle::sim
