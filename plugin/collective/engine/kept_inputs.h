// KeptInputs: copies of inputs that operations overwrite, so that they can begin again after a loss
// (survivors.h). One piece of memory, mapped at set-up and touched only where used, taken in turn.
//
// Threads: one, the poster's. Allocates nothing after make().
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "plugin/collective/base/slot_memory.h"
#include "topology/base/status.h"

namespace riffle {

class KeptInputs {
 public:
  static constexpr std::size_t kMost = 64;  // copies at once

  static Result<std::unique_ptr<KeptInputs>> make(std::size_t bytes);
  std::size_t capacity() const { return capacity_; }
  // A copy, or null: there is no room until others are given back. Precondition: 0 < bytes <=
  // capacity().
  std::byte* keep(const void* input, std::size_t bytes);
  // In any order; room comes back in the order of keep().
  void give_back(const std::byte* copy);

 private:
  struct Copy {
    std::size_t begin = 0, end = 0;
    bool is_over = false;
  };
  KeptInputs(std::unique_ptr<SlotMemory> memory, std::size_t bytes)
      : memory_(std::move(memory)), capacity_(bytes) {}

  std::unique_ptr<SlotMemory> memory_;
  std::size_t capacity_;
  std::array<Copy, kMost> copies_;  // a ring, oldest at first_
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace riffle
