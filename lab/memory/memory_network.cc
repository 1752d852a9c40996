#include "lab/memory/memory_network.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "plugin/transport/base/mesh.h"

namespace riffle {

class MemoryNetwork::Node final : public Mesh {
 public:
  Node(MemoryNetwork* network, int rank, int size) : network_(network), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void open(int peer) override { sink->opened(peer); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t /*priority*/) override {
    network_->frames_.push_back({rank_, peer, header, payload, cookie, false, {}});
  }
  std::uint64_t now_ns() const override { return network_->clock_ns_; }
  void dismiss(int peer) override { network_->dismissed_.insert({rank_, peer}); }
  void abort() override { alive = false; }

  FrameSink* sink = nullptr;
  bool alive = true;

 private:
  MemoryNetwork* network_;
  int rank_, size_;
};

MemoryNetwork::MemoryNetwork(int nodes, std::uint64_t seed) : random_(seed), sent_bytes_(nodes, 0) {
  for (int i = 0; i < nodes; ++i) nodes_.push_back(std::make_unique<Node>(this, i, nodes));
}
MemoryNetwork::~MemoryNetwork() = default;

Mesh& MemoryNetwork::mesh(int rank) { return *nodes_[rank]; }
void MemoryNetwork::set_sink(int rank, FrameSink* sink) { nodes_[rank]->sink = sink; }

bool MemoryNetwork::step() {
  ++clock_ns_;
  if (frames_.empty()) return false;
  const std::size_t i = random_() % frames_.size();
  Frame& frame = frames_[i];
  if (!frame.handed_over) {
    // From here on the sender may reuse its memory, so the network needs a copy of its own.
    frame.copy.assign(frame.payload.begin(), frame.payload.end());
    frame.handed_over = true;
    sent_bytes_[frame.from] += frame.copy.size();
    const auto [from, to, cookie] = std::tuple(frame.from, frame.to, frame.cookie);
    if (nodes_[from]->alive && dismissed_.count({from, to}) == 0) {
      nodes_[from]->sink->sent(to, cookie);
    }
    return true;
  }
  std::swap(frames_[i], frames_.back());
  Frame taken = std::move(frames_.back());
  frames_.pop_back();
  deliver(std::move(taken));
  return true;
}

void MemoryNetwork::deliver(Frame frame) {
  Node& to = *nodes_[frame.to];
  if (!to.alive || !nodes_[frame.from]->alive || dismissed_.count({frame.to, frame.from}) > 0) {
    return;
  }
  const Result<std::byte*> place = to.sink->get_receive_buffer(frame.from, frame.header);
  if (!place) {
    to.sink->lost(frame.from, place.status());
    return;
  }
  std::copy(frame.copy.begin(), frame.copy.end(), *place);
  ++delivered_;
  payload_bytes_ += frame.copy.size();
  to.sink->arrived(frame.from, frame.header, *place);
}

void MemoryNetwork::kill(int rank) {
  nodes_[rank]->alive = false;
  for (auto& node : nodes_) {
    if (node->alive) {
      node->sink->lost(rank, remote_error("node " + std::to_string(rank) + " was killed"));
    }
  }
}

}  // namespace riffle
