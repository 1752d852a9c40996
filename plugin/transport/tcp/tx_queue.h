// The frames that wait to be sent on one link: lower priority value first, then the order of
// pushing. Frames live in a pool that grows to the largest backlog seen; in steady state nothing is
// allocated. A queue that nothing was pushed to has no memory: a job has many links, and plans use
// few of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plugin/transport/base/frame.h"

namespace riffle {

class LinkChannel;

struct TxFrame {
  FrameHeader header;
  std::span<const std::byte> payload;
  std::uint64_t cookie = 0;
  FrameBytes wire{};                // the encoded header, made when a stream takes the frame
  bool is_own = false;              // heartbeat or goodbye of a stream: without a sent()
  LinkChannel* channel = nullptr;   // whose it is; null: the link's
  std::vector<std::byte> own_copy;  // the payload, where its owner left before it was sent
};

// Copies the payload into the frame: its owner leaves.
void keep_payload(TxFrame& frame);

class TxQueue {
 public:
  void push(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie,
            std::uint64_t priority);
  bool is_empty() const { return heap_.empty(); }
  std::size_t bytes() const;  // that wait
  TxFrame* pop();             // the next frame, which stays valid until recycle(); null if empty
  void recycle(TxFrame* frame);
  std::size_t size() const { return heap_.size(); }
  void copy_payloads();           // the owner of what is queued leaves
  void drop();                    // what is queued
  void put_back(TxFrame* frame);  // one that was popped: it is the next again

 private:
  void grow();

  struct Entry {
    std::uint64_t priority, order;
    TxFrame* frame;
    bool operator<(const Entry& other) const {  // std heaps keep the largest in front
      return priority != other.priority ? priority > other.priority : order > other.order;
    }
  };
  std::vector<std::unique_ptr<TxFrame[]>> pool_;
  std::size_t frames_ = 0;  // in the pool
  std::vector<TxFrame*> free_;
  std::vector<Entry> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace riffle
