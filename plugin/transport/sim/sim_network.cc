#include "plugin/transport/sim/sim_network.h"

#include <algorithm>
#include <utility>

#include "plugin/transport/base/mesh.h"
#include "plugin/transport/sim/sim_node.h"
#include "topology/base/check.h"

namespace riffle::sim {

SimNetwork::SimNetwork(const Fabric& fabric, const SimOptions& options)
    : options_(options), fabric_(fabric), random_(options.seed), fluid_(fabric, options.tick_ns) {
  RIFFLE_CHECK(options.streams >= 1 && options.streams <= SimLink::kMostStreams, "streams");
  const int n = fabric.size();
  for (int r = 0; r < n; ++r) nodes_.push_back(std::make_unique<SimNode>(this, r, n));
  link_of_.assign(static_cast<std::size_t>(n) * static_cast<std::size_t>(n), -1);
}
SimNetwork::~SimNetwork() = default;

Mesh& SimNetwork::mesh(int rank) { return *nodes_[rank]; }
TimerService& SimNetwork::timers(int rank) { return *nodes_[rank]; }
void SimNetwork::set_sink(int rank, FrameSink* sink) { nodes_[rank]->sink = sink; }
bool SimNetwork::is_alive(int rank) const { return nodes_[rank]->state != SimNode::State::kDead; }

void SimNetwork::open_all() {
  for (const auto& n : nodes_) std::fill(n->peers.begin(), n->peers.end(), SimNode::Peer::kUp);
}

SimLink* SimNetwork::find_link(int from, int to) {
  const int index = link_of_[static_cast<std::size_t>(from) * nodes_.size() + to];
  return index < 0 ? nullptr : links_[index].get();
}

std::uint64_t SimNetwork::latency_ns(int from, int to) const {
  const bool crosses = fabric_.nodes[from].rack != fabric_.nodes[to].rack;
  const std::uint64_t given = crosses ? options_.cross_rack_latency_ns : options_.latency_ns;
  if (given != 0) return given;
  return static_cast<std::uint64_t>(fabric_.latency_us_between(from, to)) * 1000;
}

SimLink& SimNetwork::link(int from, int to) {
  if (SimLink* known = find_link(from, to)) return *known;
  auto made = std::make_unique<SimLink>();
  made->from = from;
  made->to = to;
  made->flow = fluid_.add_flow(from, to);
  fluid_.set_weight(made->flow, node(from).weight(to), now_ns_);
  made->latency_ns = latency_ns(from, to);
  RIFFLE_CHECK(made->flow == static_cast<int>(links_.size()), "one flow per link");
  link_of_[static_cast<std::size_t>(from) * nodes_.size() + to] = made->flow;
  links_.push_back(std::move(made));
  return *links_.back();
}

void SimNetwork::push(EventKind kind, std::uint64_t time_ns, int node, int peer,
                      std::uint64_t what) {
  events_.push({.time_ns = time_ns,
                .order = 0,
                .what = what,
                .node = node,
                .peer = peer,
                .kind = kind,
                .charged = false});
}

void SimNetwork::at(std::uint64_t when_ns, std::function<void()> f) {
  script_.push_back(std::move(f));
  push(EventKind::kScript, std::max(when_ns, now_ns_), -1, -1, script_.size() - 1);
}

std::uint64_t SimNetwork::next_ns() const {
  return std::min({events_.next_ns(), fluid_.completion_ns(), fluid_.sharing_ns()});
}

bool SimNetwork::step() {
  const std::uint64_t next = next_ns();
  if (next == EventQueue::kNever) return false;
  RIFFLE_CHECK(next >= now_ns_, "time runs forwards");
  now_ns_ = next;
  ++counters_.events;
  // Rates last: whatever else this moment brings is done by then.
  if (fluid_.completion_ns() <= now_ns_) {
    for (const int flow : fluid_.complete(now_ns_)) transmitted(*links_[flow]);
  } else if (events_.next_ns() <= now_ns_) {
    dispatch(events_.pop());
  } else {
    fluid_.set_peer_weights(now_ns_);
  }
  return true;
}

// A dead node does nothing, a stopped one later, a busy one when its processor is free.
void SimNetwork::dispatch(Event event) {
  if (event.kind == EventKind::kScript) return std::exchange(script_[event.what], {})();
  SimNode& n = node(event.node);
  if (n.state == SimNode::State::kStopped) return n.deferred.push_back(event);
  if (n.state == SimNode::State::kDead) {
    SimFrame* frame = event.kind == EventKind::kArrived ? frames_.find(event.what) : nullptr;
    if (frame != nullptr) free_frame(*frame);
    return;
  }
  // (A loss costs nothing, but waits for its turn: a link reads what arrived before it is lost.)
  const bool waits = event.kind == EventKind::kArrived || event.kind == EventKind::kSent ||
                     event.kind == EventKind::kLost;
  if (waits && !event.charged && (options_.frame_cpu_ns > 0 || options_.byte_cpu_ns > 0)) {
    double cost_ns =
        event.kind == EventKind::kLost ? 0 : static_cast<double>(options_.frame_cpu_ns);
    if (event.kind == EventKind::kArrived) {
      cost_ns += options_.byte_cpu_ns * frames_.find(event.what)->header.length;
    }
    n.cpu_free_ns = std::max(n.cpu_free_ns, now_ns_) + static_cast<std::uint64_t>(cost_ns);
    event.charged = true;
    event.time_ns = n.cpu_free_ns;
    return events_.push(event);
  }
  handle(n, event);
}

void SimNetwork::handle(SimNode& n, const Event& event) {
  switch (event.kind) {
    case EventKind::kTimer: {
      const auto timer = n.timers.find(event.what);
      if (timer == n.timers.end()) return;
      const std::function<void()> call = std::move(timer->second);
      n.timers.erase(timer);
      return call();
    }
    case EventKind::kHeader:
      return header_arrived(n, event.what);
    case EventKind::kArrived:
      return frame_arrived(n, event.what);
    case EventKind::kSent:
      if (!n.is_over && n.peers[event.peer] == SimNode::Peer::kUp) {
        n.sink->sent(event.peer, event.what);
      }
      return;
    case EventKind::kOpened:
      if (n.is_over || n.peers[event.peer] != SimNode::Peer::kAsked) return;
      if (n.is_isolated || node(event.peer).is_isolated) return;
      // It takes both: a stopped process answers no handshake.
      if (node(event.peer).state == SimNode::State::kStopped) {
        return node(event.peer).deferred.push_back(event);
      }
      n.peers[event.peer] = SimNode::Peer::kUp;
      return n.sink->opened(event.peer);
    case EventKind::kLost:
      return handle_lost(n, event);
    case EventKind::kScript:
      break;
  }
}

}  // namespace riffle::sim
