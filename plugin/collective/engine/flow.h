// Flow: the partial sums that this node sends to one peer at one level, with credits and in order.
//
// A partial sum may arrive before its receiver has posted the collective, so it needs a place to
// wait: a slot. The receiver has a fixed number of slots per (peer, level); the sender spends a
// credit per frame and gets it back when the slot is free. Final sums need no credit: every node
// has contributed to them, so every node has posted and they are received in place.
//
// Why order: frames of a later chunk must never fill the slots that an earlier one needs, or two
// nodes could wait for each other. Partial sums to one (peer, level) therefore leave strictly in
// chunk order. With at least as many slots as one chunk has fragments per shard, the oldest
// unfinished chunk of a communicator always finishes: at its first level all contributions fit; at
// level k they need only what level k-1 has finished. By induction nothing deadlocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/collective/engine/range.h"

namespace riffle {

struct PartialFrame {
  std::uint64_t chunk = 0;  // sequence number
  int group_index = 0;      // name of the group within its level
  Range range;              // elements from the chunk's start
  const std::byte* data = nullptr;
};

class Flow {
 public:
  // Its lists are made when it first announces: most pairs of nodes never exchange blocks.
  Flow(int slots, int max_chunks, int max_pending);

  // Chunk `chunk` will send `frames` frames here. Chunks announce in sequence order.
  void announce(std::uint64_t chunk, int frames);
  // Queues a frame of an announced chunk.
  void push(const PartialFrame& frame);
  void add_credits(int n) { credits_ += n; }
  int credits() const { return credits_; }
  bool lacks_credits() const { return credits_ == 0 && !pending_.empty(); }
  // The next frame that may leave now; false if none may.
  bool pop(PartialFrame* frame);
  void clear();

 private:
  struct Turn {
    std::uint64_t chunk;
    int frames_left;
  };
  int credits_;
  const std::size_t max_chunks_, max_pending_;
  std::vector<Turn> turns_;  // ring buffer of announced chunks, oldest at head_
  std::size_t head_ = 0, size_ = 0;
  std::vector<PartialFrame> pending_;
};

// The slots for partial sums from one peer at one level.
class SlotPool {
 public:
  SlotPool(std::byte* memory, int slots, std::size_t slot_bytes);
  std::byte* take();  // null if the peer overran its credits
  void give_back(const void* slot);
  int slots() const { return slots_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  // Credits to return to the peer: batched to half a pool, so that they cost few frames.
  int take_returnable();

 private:
  int slots_;
  std::size_t slot_bytes_;
  int returnable_ = 0;
  std::vector<std::byte*> free_;
};

}  // namespace riffle
