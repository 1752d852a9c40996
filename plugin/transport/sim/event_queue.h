// EventQueue: what will happen in virtual time, earliest first; events of one moment in the order
// in which they were added, so that a run depends on nothing but its inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace riffle::sim {

enum class EventKind : std::uint8_t {
  kOpened,   // node: the link to peer is up
  kHeader,   // node: the header of frame `what` from peer is in
  kArrived,  // node: frame `what` from peer is in
  kSent,     // node: frame `what` to peer left
  kLost,     // node: peer is gone
  kTimer,    // node: timer `what`
  kScript,   // the scenario's step `what`
};

struct Event {
  std::uint64_t time_ns = 0;
  std::uint64_t order = 0;
  std::uint64_t what = 0;
  int node = -1;
  int peer = -1;
  EventKind kind = EventKind::kScript;
  bool charged = false;  // the node's processor time for it is spent

  bool operator<(const Event& other) const {  // std heaps keep the largest in front
    return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
  }
};

class EventQueue {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  void push(Event event) {
    event.order = next_order_++;
    heap_.push_back(event);
    std::push_heap(heap_.begin(), heap_.end());
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }
  bool is_empty() const { return heap_.empty(); }
  std::uint64_t next_ns() const { return heap_.empty() ? kNever : heap_.front().time_ns; }

 private:
  std::vector<Event> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace riffle::sim
