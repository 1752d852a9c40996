#include "plugin/collective/engine/kept_inputs.h"

#include <cstring>

#include "topology/base/check.h"

namespace riffle {

Result<std::unique_ptr<KeptInputs>> KeptInputs::make(std::size_t bytes) {
  Result<std::unique_ptr<SlotMemory>> memory = SlotMemory::map(bytes);
  if (!memory) return memory.status();
  return std::unique_ptr<KeptInputs>(new KeptInputs(std::move(*memory), bytes));
}

std::byte* KeptInputs::keep(const void* input, std::size_t bytes) {
  RIFFLE_CHECK(bytes > 0 && bytes <= capacity_, "a copy of this size never fits");
  if (count_ == kMost) return nullptr;
  std::size_t begin = 0;
  if (count_ > 0) {
    const std::size_t oldest = copies_[first_].begin;
    const std::size_t newest = copies_[(first_ + count_ - 1) % kMost].end;
    if (newest > oldest) {  // in use is one piece: room behind it, or before it
      begin = capacity_ - newest >= bytes ? newest : 0;
      if (begin == 0 && oldest < bytes) return nullptr;
    } else {
      begin = newest;
      if (oldest - newest < bytes) return nullptr;
    }
  }
  copies_[(first_ + count_++) % kMost] = {begin, begin + bytes, false};
  std::memcpy(memory_->data() + begin, input, bytes);
  return memory_->data() + begin;
}

void KeptInputs::give_back(const std::byte* copy) {
  const auto begin = static_cast<std::size_t>(copy - memory_->data());
  for (std::size_t i = 0; i < count_; ++i) {
    Copy& c = copies_[(first_ + i) % kMost];
    if (c.begin == begin && !c.is_over) {
      c.is_over = true;
      break;
    }
  }
  while (count_ > 0 && copies_[first_].is_over) {
    first_ = (first_ + 1) % kMost;
    --count_;
  }
}

}  // namespace riffle
