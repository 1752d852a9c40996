// SimNetwork: N nodes in one thread and virtual time. Everything that happens follows from the
// fabric, the options and the calls made; the same seed gives the same run.
//
// Model. What one node sends to another goes through a queue (lower priority value first, then the
// order of the calls) and a flow (fluid.h), one frame at a time; a frame under way is not
// preempted. It counts its payload and its 64-byte header; frames without payload (credits)
// take no time on the link, but wait for the frame under way. Weights of Mesh::set_peer_weights()
// hold exactly. A frame arrives one latency plus jitter after its last byte left, frames on one
// stream in order. sent() comes when the last byte left.
//
// Faults: kill (peers hear of it soon), stop (silence: they give up after the peer timeout),
// resume, a broken link, lost packets (delay), changed rates. A stopped node keeps what it is told
// for when it resumes.
//
// Use: mesh(r) and timers(r) go to the code under test, set_sink(r) before the first step; then
// step() until it says false. No exceptions of the code under test are caught here.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "plugin/transport/base/frame_sink.h"
#include "plugin/transport/base/link_activity.h"
#include "plugin/transport/base/timer_service.h"
#include "plugin/transport/sim/event_queue.h"
#include "plugin/transport/sim/fluid.h"
#include "plugin/transport/sim/sim_link.h"
#include "plugin/transport/sim/sim_options.h"

namespace riffle {
class Mesh;
}

namespace riffle::sim {

class SimNode;

struct SimCounters {
  std::uint64_t events = 0;
  std::uint64_t frames = 0;           // delivered
  std::uint64_t payload_bytes = 0;    // delivered
  std::uint64_t most_queued = 0;      // frames waiting on one link, at most so far
  std::uint64_t bytes_under_way = 0;  // copied by the network, not yet delivered
  std::uint64_t most_under_way = 0;
};

class SimNetwork {
 public:
  SimNetwork(const Fabric& fabric, const SimOptions& options);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  int size() const { return static_cast<int>(nodes_.size()); }
  Mesh& mesh(int rank);
  TimerService& timers(int rank);
  void set_sink(int rank, FrameSink* sink);
  // All links are up at once, without the events of opening them.
  void open_all();
  // Payloads of other frames are not copied: time passes as if they travelled, but the receiver's
  // memory stays as it is. For traffic whose content is not read.
  void carry_only(std::function<bool(const FrameHeader&)> carries) {
    carries_ = std::move(carries);
  }

  // Runs the next event. False if nothing is left that could ever happen.
  bool step();
  std::uint64_t now_ns() const { return now_ns_; }
  // When step() will run next; EventQueue::kNever if nothing is left.
  std::uint64_t next_ns() const;
  // Runs `f` at a moment of virtual time, outside any node.
  void at(std::uint64_t when_ns, std::function<void()> f);

  void kill(int rank);
  void stop(int rank);
  void resume(int rank);
  // Both sides hear of it soon; `is_silent`: not before the peer timeout, for nothing passes.
  void break_link(int a, int b, bool is_silent = false);
  // Nothing passes between the node and any other from now on, nor over links that open later.
  // No node hears of it before the peer timeout; a link that was not open never will be.
  void isolate(int rank);
  // The node says goodbye on every link behind what is queued; its sink hears nothing more.
  void close(int rank);
  void set_node_rate(int rank, std::int64_t out_kbps, std::int64_t in_kbps);
  void set_rack_rate(int rack, std::int64_t up_kbps, std::int64_t down_kbps);
  bool is_alive(int rank) const;

  const SimCounters& counters() const { return counters_; }
  const Fluid& fluid() const { return fluid_; }
  // Mesh::activity(): what left counts as delivered, the way of acknowledgements is left out.
  LinkActivity activity(int rank, int peer);

 private:
  friend class SimNode;

  SimNode& node(int rank) { return *nodes_[rank]; }
  SimLink& link(int from, int to);
  SimLink* find_link(int from, int to);
  std::uint64_t latency_ns(int from, int to) const;
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }

  // sim_network.cc: the main loop and what nodes are told.
  void push(EventKind kind, std::uint64_t time_ns, int node, int peer, std::uint64_t what);
  void dispatch(Event event);
  void handle(SimNode& node, const Event& event);
  void handle_lost(SimNode& node, const Event& event);

  // sim_frames.cc: the way of a frame.
  void send(int from, int to, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority);
  void queue(SimLink& link, SimFrame& frame, std::uint64_t priority);
  void start_next(SimLink& link);
  void transmitted(SimLink& link);
  SimFrame* next_fluid_frame(SimLink& link);
  void leave_sender(SimLink& link, SimFrame& frame);
  void hand_over(SimLink& link, SimFrame& frame);
  bool is_stalled(const SimLink& link) const;
  void copy_payload(SimFrame& frame);
  void fall_idle(SimLink& link);
  void header_arrived(SimNode& node, std::uint64_t name);
  void frame_arrived(SimNode& node, std::uint64_t name);
  bool place(SimNode& node, SimFrame& frame);
  void free_frame(SimFrame& frame);

  // sim_faults.cc: opening and ending of links.
  void open(int from, int to);
  void abort(int rank);
  void dismiss(int rank, int peer);
  void say_goodbye(SimLink& link);
  void cut(int from, int to);
  void lose(int node, int peer, std::uint64_t when_ns, const std::string& why);
  void lose_soon(int node, int peer, const std::string& why);
  void lost_by_all(int rank, const std::string& why);
  // The last heartbeat came up to a quarter of the timeout ago.
  std::uint64_t silence_ns() {
    return options_.peer_timeout_ns - below(options_.peer_timeout_ns / 4);
  }
  std::uint64_t detection_ns() { return options_.detect_ns / 10 + below(options_.detect_ns); }

  const SimOptions options_;
  const Fabric fabric_;
  std::mt19937_64 random_;
  std::uint64_t now_ns_ = 0;
  EventQueue events_;
  Fluid fluid_;
  FramePool frames_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::unique_ptr<SimLink>> links_;  // by flow
  std::vector<int> link_of_;                     // [from * size + to], -1: never used
  std::vector<std::function<void()>> script_;
  std::function<bool(const FrameHeader&)> carries_;
  SimCounters counters_;
};

}  // namespace riffle::sim
