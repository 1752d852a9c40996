// SimNode: one node's mesh and timers, and what the network knows of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugin/transport/base/mesh.h"
#include "plugin/transport/sim/sim_network.h"

namespace riffle::sim {

class SimNode final : public Mesh, public TimerService {
 public:
  enum class State { kRunning, kStopped, kDead };
  enum class Peer : std::uint8_t { kIdle, kAsked, kUp, kOver };

  SimNode(SimNetwork* network, int rank, int size)
      : peers(size, Peer::kIdle), network_(network), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers.size()); }
  void open(int peer) override { network_->open(rank_, peer); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    network_->send(rank_, peer, header, payload, cookie, priority);
  }
  std::uint64_t now_ns() const override { return network_->now_ns(); }
  LinkActivity activity(int peer) override { return network_->activity(rank_, peer); }
  void hint(int peer, RateHints hints) override {
    if (SimLink* link = network_->find_link(rank_, peer)) link->hints = hints;
  }
  void set_peer_weights(std::span<const int> of_peers) override {
    weights.assign(of_peers.begin(), of_peers.end());
    for (int peer = 0; peer < size(); ++peer) {
      const SimLink* const link = network_->find_link(rank_, peer);
      if (link != nullptr) network_->fluid_.set_weight(link->flow, weight(peer), now_ns());
    }
  }
  int weight(int peer) const { return weights.empty() ? 1 : weights[peer]; }
  void dismiss(int peer) override { network_->dismiss(rank_, peer); }
  void abort() override { network_->abort(rank_); }

  std::uint64_t call_at(std::uint64_t when_ns, std::function<void()> f) override {
    const std::uint64_t id = ++last_timer_;
    timers.emplace(id, std::move(f));
    network_->push(EventKind::kTimer, std::max(when_ns, network_->now_ns()), rank_, -1, id);
    return id;
  }
  void cancel(std::uint64_t timer) override { timers.erase(timer); }

  State state = State::kRunning;
  bool is_over = false;  // closed or aborted: the sink hears nothing more
  bool is_isolated = false;
  FrameSink* sink = nullptr;
  std::vector<Peer> peers;
  std::vector<int> weights;  // set_peer_weights()
  std::map<std::uint64_t, std::function<void()>> timers;
  std::map<int, std::string> losses;  // why a peer is about to be lost
  std::vector<Event> deferred;        // while stopped
  std::uint64_t stops = 0;            // how often it was stopped or resumed
  std::uint64_t cpu_free_ns = 0;

 private:
  SimNetwork* const network_;
  const int rank_;
  std::uint64_t last_timer_ = 0;
};

}  // namespace riffle::sim
