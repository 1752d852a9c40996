// The memory behind all slots of a communicator: one mapping, page aligned, touched only where used
// (slots of pairs that never exchange cost address space, not memory), on the NICs' NUMA node where
// the machine has several.
#pragma once

#include <cstddef>
#include <memory>

#include "topology/base/status.h"

namespace riffle {

class SlotMemory {
 public:
  static Result<std::unique_ptr<SlotMemory>> map(std::size_t bytes);
  ~SlotMemory();
  SlotMemory(const SlotMemory&) = delete;
  SlotMemory& operator=(const SlotMemory&) = delete;
  std::byte* data() const { return data_; }

 private:
  SlotMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace riffle
