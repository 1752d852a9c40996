// The channels of one link, and whose turn it is to send: one frame of each that has any, as
// channels are worth the same, whatever their frames' priorities say within each. Frames of the
// link's own go first.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "plugin/transport/tcp/link_channel.h"

namespace riffle {

class ChannelList {
 public:
  void add(std::shared_ptr<LinkChannel> channel) { all_.push_back(std::move(channel)); }
  void remove(const LinkChannel& channel) {
    std::erase_if(all_, [&](const auto& c) { return c.get() == &channel; });
  }
  // Null: there is none.
  LinkChannel* find(std::uint64_t communicator) const {
    for (const auto& c : all_) {
      if (c->communicator() == communicator) return c.get();
    }
    return nullptr;
  }
  // The first of which it holds; null: none. (For calls that change the list and `is_meant` of the
  // channel; a copy of the list would need memory, which may be what is short.)
  template <class IsMeant>
  std::shared_ptr<LinkChannel> first(IsMeant&& is_meant) const {
    for (const auto& c : all_) {
      if (is_meant(*c)) return c;
    }
    return nullptr;
  }
  std::size_t size() const { return all_.size(); }
  std::size_t in_use() const {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [](const auto& c) { return c->is_in_use(); }));
  }
  // The most that any of them asks for.
  std::size_t wanted_streams() const {
    std::size_t most = 0;
    for (const auto& c : all_) {
      if (c->is_in_use()) most = std::max(most, c->wanted_streams());
    }
    return most;
  }

  void push_own(const FrameHeader& header) {
    own_.push(header, {}, 0, 0);
    if (is_refusal(header)) ++refusals_;
  }
  TxFrame* next_frame() {
    if (TxFrame* const frame = own_.pop()) return frame;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const std::size_t at = (turn_ + i) % all_.size();
      if (TxFrame* const frame = all_[at]->next_frame()) {
        turn_ = at + 1;
        return frame;
      }
    }
    return nullptr;
  }
  void frame_sent(TxFrame* frame) {
    if (frame->channel != nullptr) return frame->channel->frame_sent(frame);
    if (is_refusal(frame->header)) --refusals_;
    own_.recycle(frame);
  }
  // The peer has departed and its connections have ended: what is queued goes nowhere.
  void count_as_sent() {
    while (TxFrame* const frame = next_frame()) frame_sent(frame);
  }
  std::size_t undelivered_bytes() const {
    std::size_t sum = own_.bytes();
    for (const auto& c : all_) sum += c->undelivered_bytes();
    return sum;
  }
  // The kernel knows what was delivered of all channels' bytes, and for how long it had some; each
  // channel gets a part as large as its part of what was on its way, and the time if it had any.
  void count_delivered(std::uint64_t bytes, std::uint64_t busy_ns) {
    std::uint64_t under_way = 0;
    for (const auto& c : all_) under_way += c->bytes_under_way();
    const double part =
        under_way == 0 ? 0
                       : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(under_way));
    for (const auto& c : all_) {
      // (Rounded up, so that nothing is left of what has arrived.)
      const double more = std::ceil(part * static_cast<double>(c->bytes_under_way()));
      c->delivered(static_cast<std::uint64_t>(more), busy_ns);
    }
  }
  // Answers to the peer's asks that are still to be sent: of the frames of the link's own the only
  // ones of which the peer, not this side's communicators, decides how many there are.
  std::size_t refusals() const { return refusals_; }

 private:
  static bool is_refusal(const FrameHeader& own) {
    return own.type == FrameType::kJoin && frame_of<JoinFrame>(own).step == JoinFrame::kRefuse;
  }

  std::vector<std::shared_ptr<LinkChannel>> all_;
  TxQueue own_;
  std::size_t refusals_ = 0;
  std::size_t turn_ = 0;
};

}  // namespace riffle
