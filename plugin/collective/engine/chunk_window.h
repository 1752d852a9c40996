// ChunkWindow: how much of exact all-reduces of about 1 MiB a node has in the works at once: what
// keeps the network busy, and little more.
//
// Why: NCCL posts such a sum as eight calls of 128 KiB (over two channels; others from 128 KiB to
// 2 MiB in fewer or more of them), all at once. Begun so,
// their frames wait in queues, at some nodes longer than at others, and where the sum ends links
// idle until the last of them has come through. How much keeps the network busy says the plan
// (PlanSet::busy_bytes); a call goes in a chunk per level of the plan then. Larger calls are of
// sums that this end is little of, smaller ones take as long as their messages do: neither has a
// window, but chunks begin in the order of the calls, so those behind a call that is held back
// wait with it.
//
// Nothing can deadlock: the oldest unfinished chunk of all nodes has none before it that is
// unfinished, so no window holds it back, whatever the windows of other nodes are. Threads: one,
// the engine's. Does not allocate.
#pragma once

#include <cstddef>

namespace riffle {

class ChunkWindow {
 public:
  // May a further chunk of so many bytes begin, where the plan asks for `limit` bytes (0: for all
  // that there are)? Of a node's engines together one that ends and one that begins always may.
  bool has_room(std::size_t bytes, std::size_t limit, int engines) const {
    const int least = engines == 1 ? 2 : 1;
    return limit == 0 || chunks_ < least || bytes_ + bytes <= limit;
  }
  // 0: a chunk that takes no place in the window.
  void began(std::size_t bytes) { chunks_ += bytes > 0 ? 1 : 0, bytes_ += bytes; }
  void ended(std::size_t bytes) { chunks_ -= bytes > 0 ? 1 : 0, bytes_ -= bytes; }

 private:
  int chunks_ = 0;  // in the works
  std::size_t bytes_ = 0;
};

}  // namespace riffle
