// SimNetwork: how links open and end.
#include <algorithm>
#include <string>

#include "plugin/transport/sim/sim_network.h"
#include "plugin/transport/sim/sim_node.h"
#include "topology/base/check.h"

namespace riffle::sim {
namespace {

constexpr std::uint64_t kLast = ~std::uint64_t{0};  // priority
constexpr std::uint64_t kNotSilence = ~std::uint64_t{0};

std::string name_of(int rank) { return "node " + std::to_string(rank); }

}  // namespace

// A link is up when both sides asked for it, one handshake later.
void SimNetwork::open(int from, int to) {
  SimNode& a = node(from);
  SimNode& b = node(to);
  if (a.is_over || a.peers[to] != SimNode::Peer::kIdle) return;
  a.peers[to] = SimNode::Peer::kAsked;
  if (a.is_isolated || b.is_isolated) return;
  if (b.is_over || b.state == SimNode::State::kDead || b.peers[from] == SimNode::Peer::kOver) {
    if (options_.opens_patiently) return;
    return lose(from, to, now_ns_ + detection_ns(), "connection refused");
  }
  if (b.peers[from] != SimNode::Peer::kAsked) return;
  const std::uint64_t when_ns = now_ns_ + 3 * latency_ns(from, to) + below(options_.jitter_ns + 1);
  push(EventKind::kOpened, when_ns, from, to, 0);
  push(EventKind::kOpened, when_ns, to, from, 0);
}

// Nothing leaves any more, what is under way never ends.
void SimNetwork::cut(int from, int to) {
  SimLink* l = find_link(from, to);
  if (l == nullptr || l->is_down) return;
  l->is_down = true;
  fluid_.drop(l->flow, now_ns_);
  if (l->under_way >= 0) {
    free_frame(frames_.at(static_cast<std::uint32_t>(l->under_way)));
    fall_idle(*l);
  }
  l->under_way = -1;
  for (const SimLink::Waiting& w : l->queue) free_frame(frames_.at(w.frame));
  l->queue.clear();
}

// The end of `peer` is news for `rank`, if it gets there.
void SimNetwork::lose_soon(int rank, int peer, const std::string& why) {
  if (node(rank).is_isolated || node(peer).is_isolated) return;
  if (options_.opens_patiently && node(rank).peers[peer] == SimNode::Peer::kAsked) return;
  lose(rank, peer, now_ns_ + detection_ns(), why);
}

void SimNetwork::lose(int rank, int peer, std::uint64_t when_ns, const std::string& why) {
  node(rank).losses.emplace(peer, why);
  push(EventKind::kLost, when_ns, rank, peer, kNotSilence);
}

void SimNetwork::handle_lost(SimNode& n, const Event& event) {
  SimNode::Peer& peer = n.peers[event.peer];
  if (n.is_over || peer == SimNode::Peer::kOver) return;
  std::string why;
  if (event.what == kNotSilence) {
    why = n.losses.at(event.peer);
  } else {
    if (node(event.peer).stops != event.what) return;  // it woke up in time
    why = "nothing heard from it for the peer timeout";
    lose_soon(event.peer, n.rank(), "connection reset by peer");
  }
  peer = SimNode::Peer::kOver;
  cut(n.rank(), event.peer);
  cut(event.peer, n.rank());
  n.sink->lost(event.peer, remote_error(why));
}

void SimNetwork::lost_by_all(int rank, const std::string& why) {
  for (int peer = 0; peer < size(); ++peer) {
    cut(rank, peer);
    cut(peer, rank);
    const SimNode::Peer state = node(peer).peers[rank];
    if (peer == rank || state == SimNode::Peer::kIdle || state == SimNode::Peer::kOver) continue;
    lose_soon(peer, rank, why);
  }
}

void SimNetwork::kill(int rank) {
  SimNode& n = node(rank);
  if (n.state == SimNode::State::kDead) return;
  n.state = SimNode::State::kDead;
  n.deferred.clear();
  n.timers.clear();
  if (!n.is_over) lost_by_all(rank, "connection reset by peer");
}

void SimNetwork::stop(int rank) {
  SimNode& n = node(rank);
  if (n.state != SimNode::State::kRunning) return;
  n.state = SimNode::State::kStopped;
  ++n.stops;
  if (n.is_over) return;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank || node(peer).peers[rank] != SimNode::Peer::kUp) continue;
    push(EventKind::kLost, now_ns_ + silence_ns(), peer, rank, n.stops);
  }
}

void SimNetwork::resume(int rank) {
  SimNode& n = node(rank);
  if (n.state != SimNode::State::kStopped) return;
  n.state = SimNode::State::kRunning;
  ++n.stops;
  for (Event event : n.deferred) {
    event.time_ns = now_ns_;
    events_.push(event);
  }
  n.deferred.clear();
  for (int peer = 0; peer < size(); ++peer) {
    if (SimLink* l = find_link(rank, peer)) start_next(*l);
    if (SimLink* l = find_link(peer, rank)) {
      l->buffered = 0;
      start_next(*l);
    }
  }
}

void SimNetwork::break_link(int a, int b, bool is_silent) {
  const auto has_link = [&](int from, int to) {
    return node(from).peers[to] == SimNode::Peer::kAsked ||
           node(from).peers[to] == SimNode::Peer::kUp;
  };
  if (!has_link(a, b) || !has_link(b, a)) return;
  link(a, b);  // also one that has carried nothing yet is down from now on
  link(b, a);
  cut(a, b);
  cut(b, a);
  const auto notice_ns = [&] { return now_ns_ + (is_silent ? silence_ns() : detection_ns()); };
  lose(a, b, notice_ns(), "connection to " + name_of(b) + " timed out");
  lose(b, a, notice_ns(), "connection to " + name_of(a) + " timed out");
}

void SimNetwork::isolate(int rank) {
  node(rank).is_isolated = true;
  for (int peer = 0; peer < size(); ++peer) {
    // On one side it may be up already.
    for (const auto& [a, b] : {std::pair(rank, peer), std::pair(peer, rank)}) {
      if (peer == rank || node(a).peers[b] != SimNode::Peer::kUp) continue;
      link(a, b);
      cut(a, b);
      lose(a, b, now_ns_ + silence_ns(), "connection to " + name_of(b) + " timed out");
    }
  }
}

void SimNetwork::abort(int rank) {
  SimNode& n = node(rank);
  if (n.is_over) return;
  n.is_over = true;
  lost_by_all(rank, "connection reset by peer");
}

void SimNetwork::close(int rank) {
  SimNode& n = node(rank);
  if (n.is_over) return;
  n.is_over = true;
  for (int peer = 0; peer < size(); ++peer) {
    const SimNode::Peer ours = n.peers[peer], theirs = node(peer).peers[rank];
    if (ours == SimNode::Peer::kUp) {
      SimLink& l = link(rank, peer);
      if (!l.is_down) say_goodbye(l);
    } else if (theirs == SimNode::Peer::kAsked) {
      lose_soon(peer, rank, "connection refused");
    }
  }
}

// What is queued still goes, behind it a goodbye.
void SimNetwork::say_goodbye(SimLink& l) {
  for (const SimLink::Waiting& w : l.queue) {
    if (options_.carries_payload) copy_payload(frames_.at(w.frame));
  }
  if (l.under_way >= 0 && options_.carries_payload) {
    copy_payload(frames_.at(static_cast<std::uint32_t>(l.under_way)));
  }
  SimFrame& goodbye = frames_.take();
  goodbye.from = l.from;
  goodbye.to = l.to;
  goodbye.says_goodbye = true;
  queue(l, goodbye, kLast);
}

void SimNetwork::dismiss(int rank, int peer) {
  SimNode& n = node(rank);
  if (n.is_over || n.peers[peer] != SimNode::Peer::kUp) return;
  n.peers[peer] = SimNode::Peer::kOver;
  SimLink& l = link(rank, peer);
  if (!l.is_down) say_goodbye(l);
}

void SimNetwork::set_node_rate(int rank, std::int64_t out_kbps, std::int64_t in_kbps) {
  fluid_.set_node(rank, out_kbps, in_kbps, now_ns_);
}
void SimNetwork::set_rack_rate(int rack, std::int64_t up_kbps, std::int64_t down_kbps) {
  fluid_.set_rack(rack, up_kbps, down_kbps, now_ns_);
}

}  // namespace riffle::sim
