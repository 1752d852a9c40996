#include "plugin/transport/tcp/tx_queue.h"

#include <algorithm>

namespace riffle {
namespace {

constexpr std::size_t kFirstFrames = 16;

}  // namespace

void keep_payload(TxFrame& frame) {
  if (frame.payload.data() == frame.own_copy.data()) return;  // it has been
  frame.own_copy.assign(frame.payload.begin(), frame.payload.end());
  frame.payload = frame.own_copy;
}

// The lists have room for all frames from here on, so that nothing but this allocates.
void TxQueue::grow() {
  const std::size_t more = std::max(frames_, kFirstFrames);
  free_.reserve(frames_ + more);
  heap_.reserve(frames_ + more);
  TxFrame* const block = pool_.emplace_back(std::make_unique<TxFrame[]>(more)).get();
  frames_ += more;
  for (std::size_t i = 0; i < more; ++i) free_.push_back(&block[i]);
}

void TxQueue::push(const FrameHeader& header, std::span<const std::byte> payload,
                   std::uint64_t cookie, std::uint64_t priority) {
  if (free_.empty()) grow();
  TxFrame* const frame = free_.back();
  free_.pop_back();
  frame->header = header;
  frame->payload = payload;
  frame->cookie = cookie;
  heap_.push_back({priority, next_order_++, frame});
  std::push_heap(heap_.begin(), heap_.end());
}

TxFrame* TxQueue::pop() {
  if (heap_.empty()) return nullptr;
  std::pop_heap(heap_.begin(), heap_.end());
  TxFrame* const frame = heap_.back().frame;
  heap_.pop_back();
  return frame;
}

std::size_t TxQueue::bytes() const {
  std::size_t sum = 0;
  for (const Entry& e : heap_) sum += kFrameHeaderBytes + e.frame->payload.size();
  return sum;
}

void TxQueue::recycle(TxFrame* frame) {
  frame->own_copy.clear();
  free_.push_back(frame);
}

void TxQueue::drop() {
  for (const Entry& e : heap_) recycle(e.frame);
  heap_.clear();
}

void TxQueue::put_back(TxFrame* frame) {
  heap_.push_back({0, 0, frame});
  std::push_heap(heap_.begin(), heap_.end());
}

void TxQueue::copy_payloads() {
  for (Entry& e : heap_) keep_payload(*e.frame);
}

}  // namespace riffle
