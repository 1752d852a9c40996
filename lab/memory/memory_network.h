// An in-memory network of N nodes in one thread, for tests: every frame is handed over and
// delivered at a moment drawn from a seed, in any order, even between the same two nodes. Whatever
// works here does not depend on timing or on the order of frames.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "plugin/transport/base/frame_sink.h"

namespace riffle {

class Mesh;

class MemoryNetwork {
 public:
  MemoryNetwork(int nodes, std::uint64_t seed);
  ~MemoryNetwork();
  // The mesh of one node; its sink must be set before the first step.
  Mesh& mesh(int rank);
  void set_sink(int rank, FrameSink* sink);
  // Carries out one randomly chosen event. False if nothing is in flight.
  bool step();
  // The node is gone: its peers hear of it, its frames close_unconfirmed.
  void kill(int rank);
  std::uint64_t frames_delivered() const { return delivered_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint64_t bytes_sent(int rank) const { return sent_bytes_[rank]; }

 private:
  class Node;
  struct Frame {
    int from, to;
    FrameHeader header;
    std::span<const std::byte> payload;
    std::uint64_t cookie;
    bool handed_over = false;
    std::vector<std::byte> copy;
  };
  void deliver(Frame frame);

  std::mt19937_64 random_;
  std::set<std::pair<int, int>> dismissed_;  // who dismissed whom
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Frame> frames_;
  std::vector<std::uint64_t> sent_bytes_;
  std::uint64_t delivered_ = 0, payload_bytes_ = 0, clock_ns_ = 0;
};

}  // namespace riffle
