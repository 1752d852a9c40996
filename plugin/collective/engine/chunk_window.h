// ChunkWindow: how much of exact all-reduces of some MiB a node has in the works at once: what
// keeps the network busy, and little more.
//
// Why: NCCL posts up to eight calls before it waits, of 128 KiB where the sum has 1 to 16 MiB.
// Begun all at once, their frames wait in queues, at some nodes longer than at others, and where a
// sum ends links idle until the last of them has come through. How much keeps the network busy says
// the plan (PlanSet::window_bytes). Larger calls are of sums that this end is little of; smaller
// ones take as long as their messages do.
//
// Nothing can deadlock: the oldest unfinished chunk of all nodes has none before it that is
// unfinished, so no window holds it back; nodes need not even have the same one. Threads: one, the
// engine's. Does not allocate.
#pragma once

#include <cstddef>

namespace riffle {

class ChunkWindow {
 public:
  // One that ends and one that begins, whatever their size.
  static constexpr int kLeastChunks = 2;

  // May a further chunk of so many bytes begin, in a plan that asks for `limit` bytes (0: for all
  // that there are)?
  bool has_room(std::size_t bytes, std::size_t limit) const {
    return limit == 0 || chunks_ < kLeastChunks || bytes_ + bytes <= limit;
  }
  // 0: a chunk that takes no place in the window.
  void began(std::size_t bytes) { chunks_ += bytes > 0 ? 1 : 0, bytes_ += bytes; }
  void ended(std::size_t bytes) { chunks_ -= bytes > 0 ? 1 : 0, bytes_ -= bytes; }
  void all_failed() { *this = {}; }

 private:
  int chunks_ = 0;  // in the works
  std::size_t bytes_ = 0;
};

}  // namespace riffle
