#include "plugin/collective/engine/flow.h"

#include "topology/base/check.h"

namespace riffle {

Flow::Flow(int slots, int max_chunks, int max_pending)
    : credits_(slots),
      max_chunks_(static_cast<std::size_t>(max_chunks)),
      max_pending_(static_cast<std::size_t>(max_pending)) {}

void Flow::announce(std::uint64_t chunk, int frames) {
  if (frames == 0) return;
  if (turns_.empty()) {
    turns_.resize(max_chunks_);
    pending_.reserve(max_pending_);
  }
  if (size_ > 0) {  // several groups of one level may share the peer
    Turn& last = turns_[(head_ + size_ - 1) % turns_.size()];
    if (last.chunk == chunk) {
      last.frames_left += frames;
      return;
    }
  }
  RIFFLE_CHECK(size_ < turns_.size(), "more running chunks than announced for");
  turns_[(head_ + size_) % turns_.size()] = {chunk, frames};
  ++size_;
}

void Flow::push(const PartialFrame& frame) { pending_.push_back(frame); }

bool Flow::pop(PartialFrame* frame) {
  if (credits_ == 0 || size_ == 0 || pending_.empty()) return false;
  Turn& turn = turns_[head_];
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (pending_[i].chunk != turn.chunk) continue;
    *frame = pending_[i];
    // Order within the chunk is kept: it is the order in which earlier levels finish.
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    --credits_;
    if (--turn.frames_left == 0) {
      head_ = (head_ + 1) % turns_.size();
      --size_;
    }
    return true;
  }
  return false;
}

void Flow::clear() {
  pending_.clear();
  size_ = 0;
}

SlotPool::SlotPool(std::byte* memory, int slots, std::size_t slot_bytes)
    : slots_(slots), slot_bytes_(slot_bytes) {
  free_.reserve(slots);
  for (int i = slots - 1; i >= 0; --i) {
    free_.push_back(memory + static_cast<std::size_t>(i) * slot_bytes);
  }
}

std::byte* SlotPool::take() {
  if (free_.empty()) return nullptr;
  std::byte* slot = free_.back();
  free_.pop_back();
  return slot;
}

void SlotPool::give_back(const void* slot) {
  free_.push_back(static_cast<std::byte*>(const_cast<void*>(slot)));
  ++returnable_;
}

int SlotPool::take_returnable() {
  if (2 * returnable_ < slots_) return 0;
  const int n = returnable_;
  returnable_ = 0;
  return n;
}

}  // namespace riffle
