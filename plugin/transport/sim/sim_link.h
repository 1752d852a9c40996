// SimLink: what one node sends to one other, and the frames on their way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "plugin/transport/base/frame.h"

namespace riffle::sim {

struct SimFrame {
  std::uint32_t id = 0;
  std::uint32_t generation = 0;  // of this id
  int from = -1, to = -1;
  FrameHeader header;
  std::span<const std::byte> payload;
  std::uint64_t cookie = 0;
  std::vector<std::byte> copy;  // the payload, once it left the sender
  bool is_copied = false;
  bool says_goodbye = false;
  bool is_under_way = false;   // counted in bytes_under_way
  std::byte* place = nullptr;  // where the receiver wants it
  int stream = 0;

  bool is_fluid() const { return header.length > 0; }
  double wire_bytes() const { return static_cast<double>(kFrameHeaderBytes + header.length); }
};

// Frames are named by id and generation, so that an event about a frame that is gone finds nothing.
class FramePool {
 public:
  SimFrame& take() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(frames_.size()));
      frames_.emplace_back().id = free_.back();
    }
    SimFrame& frame = frames_[free_.back()];
    free_.pop_back();
    return frame;
  }
  static std::uint64_t name(const SimFrame& frame) {
    return std::uint64_t{frame.generation} << 32 | frame.id;
  }
  SimFrame& at(std::uint32_t id) { return frames_[id]; }
  SimFrame* find(std::uint64_t name) {
    SimFrame& frame = frames_[static_cast<std::uint32_t>(name)];
    return frame.generation == name >> 32 ? &frame : nullptr;
  }
  void give_back(SimFrame& frame) {
    std::vector<std::byte> copy = std::move(frame.copy);
    copy.clear();
    SimFrame empty;
    empty.id = frame.id;
    empty.generation = frame.generation + 1;
    empty.copy = std::move(copy);  // keeps its memory
    frame = std::move(empty);
    free_.push_back(frame.id);
  }

 private:
  std::deque<SimFrame> frames_;
  std::vector<std::uint32_t> free_;
};

struct SimLink {
  static constexpr int kMostStreams = 4;
  struct Waiting {
    std::uint64_t priority, order;
    std::uint32_t frame;
    bool operator<(const Waiting& other) const {  // std heaps keep the largest in front
      return priority != other.priority ? priority > other.priority : order > other.order;
    }
  };

  int from = -1, to = -1, flow = -1;
  std::uint64_t latency_ns = 0;
  std::vector<Waiting> queue;   // a heap
  std::int64_t under_way = -1;  // frame that the flow transmits
  std::uint64_t next_order = 0;
  int next_stream = 0;
  std::array<std::uint64_t, kMostStreams> stream_ns{};  // when its last frame arrives
  std::uint64_t buffered = 0;  // payload bytes that wait in the kernel of a stopped receiver
  // Mesh::activity().
  std::uint64_t out_bytes = 0;  // of frames that have left
  std::uint64_t busy_ns = 0;    // of the times that are over
  std::uint64_t busy_since_ns = 0;
  RateHints hints;          // what `from` says of `to` in every further frame
  RateHints arrived_hints;  // what the last frame that arrived said
  bool is_down = false;     // frames already gone may still arrive, nothing else leaves
};

}  // namespace riffle::sim
