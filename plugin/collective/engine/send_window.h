// SendWindow: what this node has on its way at once, over all peers: at most `bytes`, the oldest
// chunk first.
//
// Why: links that share fairly give every flow the same rate, while a plan that uses every link up
// needs rates in proportion to what the flows carry. Handed over all at once, thin flows run ahead,
// stop when their chunks wait for the thick ones, and leave the link to these, which cannot fill it
// alone. Handed over in order, a window at a time, all flows keep the pace of the plan.
//
// Nothing can deadlock: a frame that is on its way is taken by its receiver whatever else waits
// (flow.h), so it is sent and makes room. Threads: one, the owner of the mesh. Allocates in
// reserve() only: a frame that finds no room to wait goes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugin/transport/base/frame_sink.h"

namespace riffle {

class Mesh;

class SendWindow {
 public:
  static constexpr std::size_t kNoLimit = ~std::size_t{0};
  explicit SendWindow(Mesh* mesh) : mesh_(mesh) {}

  // So many frames may wait at once.
  void reserve(std::size_t frames) { waiting_.reserve(frames); }
  // A window of 0 still lets one frame go at a time.
  void set_bytes(std::size_t bytes) { bytes_ = bytes; }

  // Sends a frame now or when there is room; lower priority values first, then the order of the
  // calls. The payload must stay readable until the mesh's sent() with this cookie.
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority);
  // Sends a frame now, whatever else waits; it counts as on its way like all others.
  void send_now(int peer, const FrameHeader& header, std::span<const std::byte> payload,
                std::uint64_t cookie, std::uint64_t priority) {
    hand_over({priority, next_order_++, peer, header, payload, cookie});
  }
  // A frame of `bytes` bytes of payload has left.
  void sent(std::size_t bytes);
  // Forgets what waits.
  void clear() { waiting_.clear(); }

 private:
  struct Waiting {
    std::uint64_t priority, order;
    int peer;
    FrameHeader header;
    std::span<const std::byte> payload;
    std::uint64_t cookie;
    bool operator<(const Waiting& other) const {  // std heaps keep the largest in front
      return priority != other.priority ? priority > other.priority : order > other.order;
    }
  };
  bool has_room() const { return under_way_ == 0 || under_way_ < bytes_; }
  void hand_over(const Waiting& frame);

  Mesh* const mesh_;
  std::size_t bytes_ = kNoLimit;
  std::size_t under_way_ = 0;
  std::uint64_t next_order_ = 0;
  std::vector<Waiting> waiting_;  // a heap
};

}  // namespace riffle
