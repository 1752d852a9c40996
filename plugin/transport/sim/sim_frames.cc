// SimNetwork: the way of a frame from send() to arrived().
#include <algorithm>
#include <cstring>

#include "plugin/transport/sim/sim_network.h"
#include "plugin/transport/sim/sim_node.h"
#include "topology/base/check.h"

namespace riffle::sim {
namespace {

constexpr int kPoison = 0xa5;
constexpr std::uint64_t kKernelBytes = 256 << 10;  // that the kernel takes for a stopped process

}  // namespace

void SimNetwork::send(int from, int to, const FrameHeader& header,
                      std::span<const std::byte> payload, std::uint64_t cookie,
                      std::uint64_t priority) {
  SimNode& sender = node(from);
  if (sender.is_over || sender.peers[to] == SimNode::Peer::kOver) return;
  RIFFLE_CHECK(sender.peers[to] == SimNode::Peer::kUp, "send() before the link is open");
  RIFFLE_CHECK(header.length == payload.size() && header.length <= kMaxFramePayload,
               "the header's length is not the payload's");
  SimFrame& frame = frames_.take();
  frame.from = from;
  frame.to = to;
  frame.header = header;
  frame.payload = payload;
  frame.cookie = cookie;
  SimLink& l = link(from, to);
  frame.header.hints = l.hints;
  queue(l, frame, priority);
}

void SimNetwork::queue(SimLink& l, SimFrame& frame, std::uint64_t priority) {
  l.queue.push_back({priority, l.next_order++, frame.id});
  std::push_heap(l.queue.begin(), l.queue.end());
  counters_.most_queued = std::max<std::uint64_t>(counters_.most_queued, l.queue.size());
  start_next(l);
}

bool SimNetwork::is_stalled(const SimLink& l) const {
  if (l.is_down || nodes_[l.from]->state != SimNode::State::kRunning) return true;
  return nodes_[l.to]->state == SimNode::State::kDead ||
         (nodes_[l.to]->state == SimNode::State::kStopped && l.buffered >= kKernelBytes);
}

// Hands over the frames without payload in front and returns the first one with.
SimFrame* SimNetwork::next_fluid_frame(SimLink& l) {
  while (!l.queue.empty() && !is_stalled(l)) {
    std::pop_heap(l.queue.begin(), l.queue.end());
    SimFrame& frame = frames_.at(l.queue.back().frame);
    l.queue.pop_back();
    frame.stream = l.next_stream++ % options_.streams;
    if (frame.is_fluid()) return &frame;
    hand_over(l, frame);
  }
  return nullptr;
}

void SimNetwork::start_next(SimLink& l) {
  if (l.under_way >= 0) return;
  SimFrame* frame = next_fluid_frame(l);
  if (frame == nullptr) return;
  l.busy_since_ns = now_ns_;
  leave_sender(l, *frame);
  fluid_.begin(l.flow, frame->wire_bytes(), now_ns_);
}

// The frame under way is out; the flow goes on with the next, if there is one.
void SimNetwork::transmitted(SimLink& l) {
  bool complete = true;
  while (complete) {
    SimFrame& done = frames_.at(static_cast<std::uint32_t>(l.under_way));
    l.under_way = -1;
    l.out_bytes += static_cast<std::uint64_t>(done.wire_bytes());
    hand_over(l, done);
    SimFrame* next = next_fluid_frame(l);
    if (next == nullptr) {
      fall_idle(l);
      return fluid_.rest(l.flow, now_ns_);
    }
    leave_sender(l, *next);
    complete = fluid_.more(l.flow, next->wire_bytes(), now_ns_);
  }
}

void SimNetwork::fall_idle(SimLink& l) { l.busy_ns += now_ns_ - l.busy_since_ns; }

LinkActivity SimNetwork::activity(int rank, int peer) {
  const auto bytes = [this](const SimLink& l) {
    return l.out_bytes + static_cast<std::uint64_t>(fluid_.passed(l.flow, now_ns_));
  };
  LinkActivity a;
  if (const SimLink* out = find_link(rank, peer)) {
    a.out_bytes = bytes(*out);
    a.busy_ns = out->busy_ns + (out->under_way >= 0 ? now_ns_ - out->busy_since_ns : 0);
  }
  if (const SimLink* in = find_link(peer, rank)) {
    a.in_bytes = bytes(*in);
    a.of_peer = in->arrived_hints;
  }
  return a;
}

// The first byte leaves.
void SimNetwork::leave_sender(SimLink& l, SimFrame& frame) {
  l.under_way = frame.id;
  // The kernel copies the payload some time before sent(): at the earliest now.
  if (options_.carries_payload && below(2) == 0) copy_payload(frame);
  if (!options_.early_headers) return;
  std::uint64_t& free_ns = l.stream_ns[frame.stream];
  free_ns = std::max(free_ns, now_ns_ + l.latency_ns + below(options_.jitter_ns + 1));
  push(EventKind::kHeader, free_ns, l.to, l.from, FramePool::name(frame));
}

// The last byte left.
void SimNetwork::hand_over(SimLink& l, SimFrame& frame) {
  if (options_.carries_payload) copy_payload(frame);
  if (!frame.says_goodbye) push(EventKind::kSent, now_ns_, l.from, l.to, frame.cookie);
  if (node(l.to).state == SimNode::State::kStopped) l.buffered += frame.header.length;
  std::uint64_t& free_ns = l.stream_ns[frame.stream];
  std::uint64_t when_ns = now_ns_ + l.latency_ns + below(options_.jitter_ns + 1);
  if (options_.loss_per_frame > 0 &&
      static_cast<double>(below(1'000'000)) < options_.loss_per_frame * 1e6) {
    when_ns += options_.retransmit_ns;
  }
  if (frame.says_goodbye) {  // it comes on every stream; the last one counts
    for (const std::uint64_t other : l.stream_ns) when_ns = std::max(when_ns, other);
  }
  free_ns = std::max(free_ns, when_ns);
  push(EventKind::kArrived, free_ns, l.to, l.from, FramePool::name(frame));
}

void SimNetwork::copy_payload(SimFrame& frame) {
  if (frame.is_copied || (carries_ && !carries_(frame.header))) return;
  frame.copy.assign(frame.payload.begin(), frame.payload.end());
  frame.is_copied = true;
  counters_.bytes_under_way += frame.copy.size();
  counters_.most_under_way = std::max(counters_.most_under_way, counters_.bytes_under_way);
}

void SimNetwork::free_frame(SimFrame& frame) {
  if (frame.is_copied) counters_.bytes_under_way -= frame.copy.size();
  frames_.give_back(frame);
}

void SimNetwork::header_arrived(SimNode& n, std::uint64_t name) {
  SimFrame* frame = frames_.find(name);
  if (frame == nullptr || n.is_over || n.peers[frame->from] != SimNode::Peer::kUp) return;
  (void)place(n, *frame);
}

// Asks where the payload goes. A refusal breaks the link.
bool SimNetwork::place(SimNode& n, SimFrame& frame) {
  const Result<std::byte*> where = n.sink->get_receive_buffer(frame.from, frame.header);
  if (!where) {
    const int from = frame.from, to = frame.to;
    cut(from, to);
    cut(to, from);
    lose(to, from, now_ns_, where.status().message());
    lose(from, to, now_ns_ + detection_ns(), "connection reset by peer");
    return false;
  }
  frame.place = *where;
  if (options_.poisons && options_.carries_payload && frame.header.length > 0) {
    std::memset(frame.place, kPoison, frame.header.length);
  }
  return true;
}

void SimNetwork::frame_arrived(SimNode& n, std::uint64_t name) {
  SimFrame* found = frames_.find(name);
  if (found == nullptr) return;
  SimFrame& frame = *found;
  const int from = frame.from;
  const bool counts = !n.is_over && n.peers[from] == SimNode::Peer::kUp;
  if (counts && frame.says_goodbye) {
    free_frame(frame);
    return n.sink->departed(from);
  }
  // A header that was refused comes here too, but then the peer is lost by now or about to be.
  if (!counts || (frame.place == nullptr && !place(n, frame))) return free_frame(frame);
  ++counters_.frames;
  counters_.payload_bytes += frame.header.length;
  if (options_.carries_payload && !frame.copy.empty()) {
    std::memcpy(frame.place, frame.copy.data(), frame.copy.size());
  }
  link(from, n.rank()).arrived_hints = frame.header.hints;
  const FrameHeader header = frame.header;
  std::byte* const payload = frame.place;
  free_frame(frame);
  n.sink->arrived(from, header, payload);
}

}  // namespace riffle::sim
