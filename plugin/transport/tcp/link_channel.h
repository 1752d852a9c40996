// LinkChannel: what one communicator, or one connection of NET, has of the link to a peer: its own
// sink, queue, hints and counters. The connections and the signs of life are the link's
// (tcp_link.h), which carries the frames of all its channels in turn.
//
// A mesh's first link to a peer begins with its channel; further communicators of the same two
// processes join it (shared_links.h) by frames of the link's own (join_frames.h):
//
//   joining   asked for, here or by the peer, and not open yet: carries nothing
//   up        until this side closes or aborts, or the peer is lost to it
//   leaving   this side has ended it: what close() left queued still goes out, what comes for it is
//             thrown away; over once the peer has left it as well
//
// The last channel takes the link with it: then close() and abort() are the link's, as tcp_link.h
// says. Each other one says LEAVE; the peer's sink hears departed() or lost() once it has all the
// frames before it. The link's end is that of all its channels: those that are up are lost, those
// that join are told to connect a link of their own.
//
// Dropping the pointer that TcpLink gave out is abort(). Reactor thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plugin/transport/base/link.h"
#include "plugin/transport/base/link_activity.h"
#include "plugin/transport/device/nic_traffic.h"
#include "plugin/transport/tcp/join_frames.h"
#include "plugin/transport/tcp/stream.h"
#include "plugin/transport/tcp/tx_queue.h"

namespace riffle {

class Deliveries;
class TcpLink;

struct ChannelOptions {
  int number = 0;                              // what the sink knows the peer as
  std::string peer;                            // for messages: "node 3 (10.0.0.3:4000)"
  std::function<void(const Status&)> on_lost;  // told in place of the sink, where set
  std::uint64_t communicator = 0;              // stamped on every frame, and what they come by
  std::shared_ptr<Deliveries> deliveries;      // where it ends with its link (MeshOptions)
  // Of the NICs' account; null: the channel's bytes are not in it.
  std::shared_ptr<NicTraffic::Slot> traffic;
  // Where set, the channel joins a link that is up. Told once, in a turn of the link: ok: the
  // channel is open; else it is over.
  std::function<void(const Status&)> on_joined;
  // Of the side that asks: is the peer's answer authentic?
  std::function<Status(const JoinFrame&)> check_welcome;
};

class LinkChannel final : public Link, public std::enable_shared_from_this<LinkChannel> {
 public:
  LinkChannel(std::shared_ptr<TcpLink> link, ChannelOptions options, FrameSink* sink);

  void set_sink(FrameSink* sink) override { sink_ = sink; }
  const std::string& peer() const override { return options_.peer; }
  std::size_t streams() const override;
  void send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie,
            std::uint64_t priority) override;
  void flush() override;
  void close() override;
  void abort() override;

  // As in Mesh. Of the link's busy time that in which it had something of this channel.
  LinkActivity activity();
  void hint(RateHints hints) { hints_ = hints; }
  // The link uses as many streams as the most that any channel asks for; at first all.
  void use_streams(std::size_t streams);
  LinkCounters counters() const { return counters_; }
  // Null: it is over.
  TcpLink* link() const { return link_.get(); }
  std::uint64_t communicator() const { return options_.communicator; }
  const std::shared_ptr<Deliveries>& deliveries() const { return options_.deliveries; }

  // ---- for the link ----

  enum class State { kJoining, kUp, kLeaving, kOver };
  State state() const { return state_; }
  bool is_in_use() const { return state_ == State::kJoining || state_ == State::kUp; }
  bool was_left() const { return has_departed_ && left_; }  // on purpose, before the link's end
  bool has_left() const { return has_left_; }  // the peer, and nothing more comes of it
  // Is there an owner that waits for something?
  bool is_heard() const {
    return state_ == State::kJoining || (state_ == State::kUp && sink_ != nullptr);
  }
  std::size_t wanted_streams() const { return wanted_streams_; }

  TxFrame* next_frame();  // null: nothing to send
  void frame_sent(TxFrame* frame);
  void put_back(TxFrame* frame) {  // next_frame() handed it out, and it did not leave
    --frames_taken_;
    queue_.put_back(frame);
  }
  std::size_t undelivered_bytes() const { return queue_.bytes(); }
  void copy_payloads() { queue_.copy_payloads(); }
  void moved(std::size_t out_bytes, std::size_t in_bytes);
  // Of its bytes that the kernel has, so many more have been delivered in so much time.
  std::uint64_t bytes_under_way() const { return counters_.bytes_sent - delivered_bytes_; }
  void delivered(std::uint64_t more_bytes, std::uint64_t busy_ns) {
    if (bytes_under_way() > 0 || frames_taken_ != counters_.frames_sent) busy_ns_ += busy_ns;
    delivered_bytes_ += std::min(more_bytes, bytes_under_way());
  }

  // Not ok: the link is to end for it.
  Result<FramePlace> place_for(const FrameHeader& header);
  void arrived(const FrameHeader& header, std::byte* payload);  // null: it was thrown away
  void heard(const JoinFrame& frame);
  void heard(const LeaveFrame& frame);
  // All that the peer will ever send on this link is in.
  void link_departed();
  void link_broke(const Status& why);
  // This side's work threw.
  void failed(const Status& why);
  // Frames that it may still send count for LEAVE; what is queued is copied or dropped.
  LeaveFrame leave(bool drains);
  void end_if_over();  // nothing more comes, and nothing is left to send
  void end();          // drops the link

 private:
  void open();
  void end_joining(const Status& why);
  void lose(const Status& why);
  void tell_lost(FrameSink* sink, const Status& why);
  void check_left();
  template <class F>
  void guarded(F&& f);

  std::shared_ptr<TcpLink> link_;
  ChannelOptions options_;
  FrameSink* sink_;
  State state_;
  TxQueue queue_;
  std::size_t wanted_streams_ = ~std::size_t{0};
  RateHints hints_, hints_of_peer_;
  LinkCounters counters_;
  std::uint64_t delivered_bytes_ = 0, busy_ns_ = 0;
  std::uint64_t frames_taken_ = 0;  // by streams
  std::optional<LeaveFrame> left_;  // the peer's
  bool has_left_ = false;           // ... and all frames before it are in
  bool has_departed_ = false;
  bool drains_ = false;  // it was closed, not aborted
};

}  // namespace riffle
