// TcpLink: the connections between this process and one peer: several streams, any frame on any
// stream. A stream that can take data takes the next whole frame, so a slow stream does not set the
// pace. Frames are those of the link's channels (link_channel.h), one or, where communicators of
// the same two processes share it (shared_links.h), several.
//
// Alive: a stream that sent nothing for a quarter of the peer timeout sends a heartbeat; a peer
// from which a stream heard nothing for the peer timeout is lost, whether it died, hangs or was
// stopped. Time in which this process did not run itself does not count: when a whole job was
// suspended, its peers slept as well.
//
// End, with its last channel. close() sends what is queued, then GOODBYE on every stream, ends this
// direction and waits for the peer's end, all behind the scenes; so an early closer is not mistaken
// for a lost peer. It goes on for as long as the peer's machine takes bytes; 5 s (drain_ns) without
// any end it, with a warning if something was not delivered. While the peer's machine may lack
// something of that, it is a delivery (base/deliveries.h). abort() drops everything at once.
// Reactor thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/base/deliveries.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/tcp/channel_list.h"
#include "plugin/transport/tcp/link_channel.h"
#include "plugin/transport/tcp/link_clock.h"
#include "plugin/transport/tcp/shared_links.h"
#include "plugin/transport/tcp/stream.h"

namespace riffle {

struct TcpLinkOptions {
  std::string peer;  // for messages: "node 3 (10.0.0.3:4000)"
  std::uint64_t peer_timeout_ns = 60'000'000'000;
  bool payload_crc = false;
  std::uint64_t drain_ns = 5'000'000'000;  // how long close() bears with a peer that takes nothing
  std::uint64_t session = 0;               // of the handshakes of its streams
  bool is_accepted = false;                // this side accepted the connections
};

class TcpLink final : public std::enable_shared_from_this<TcpLink>,
                      private Reactor::WakeHandler,
                      private LinkClock::Hand {
 public:
  // The first channel. Without a sink it needs one by set_sink() before the reactor's next turn.
  static std::shared_ptr<LinkChannel> create(Reactor& reactor, std::vector<Connection> connections,
                                             TcpLinkOptions options, ChannelOptions channel,
                                             FrameSink* sink = nullptr);
  ~TcpLink() override;

  // One more channel. Precondition: is_joinable(), and the link has none of this communicator.
  std::shared_ptr<LinkChannel> attach(ChannelOptions options, FrameSink* sink);
  // The link may be found by others from now on, for as long as it is up. Tells the peer at once
  // that it is up here.
  void share(std::shared_ptr<SharedLinks> among, LinkTerms terms);
  const LinkTerms& terms() const { return terms_; }
  bool is_heard() const { return is_heard_; }  // the peer has it, too
  // Up here and, as something came from there, at the peer, which has not said goodbye.
  bool is_joinable() const;
  bool has(std::uint64_t communicator) const { return channels_.find(communicator) != nullptr; }
  const LinkMark& mark() const { return mark_; }  // the same at both ends

  std::size_t streams() const { return streams_.size(); }  // that it has
  std::size_t first_streams() const { return first_streams_; }
  std::uint64_t session() const { return options_.session; }
  int hops() const;  // as in Mesh
  // One more stream, while the link is up. `is_proven`: the peer has it, or is going to (stream.h).
  // Precondition: takes_streams(), else it is dropped.
  void add(Connection connection, bool is_proven);
  bool takes_streams() const { return state_ == State::kUp && goodbyes_heard_ == 0; }
  // Streams that it has, or is to have: the most that was asked for.
  std::size_t asked_streams() const { return asked_streams_; }
  void ask_streams(std::size_t streams) { asked_streams_ = std::max(asked_streams_, streams); }
  // The busiest stream's time, all streams' retransmits, the least round trip. Asks the kernel.
  std::optional<WireAccount> wire_account() const;

  // ---- for its channels ----

  bool has_payload_crc() const { return options_.payload_crc; }
  void wake() { reactor_->wake(this); }
  void flush() { on_wake(); }
  template <class Frame>
  void send_own(const Frame& frame, std::uint64_t communicator) {
    FrameHeader header = header_of(frame);
    header.communicator = communicator;
    channels_.push_own(header);
    wake();
  }
  // Nothing that this channel gave or received in part is touched any more.
  void forget(const LinkChannel& channel);
  // The channel is not in use any more; the link ends with the last one. `drains`: what it has
  // queued goes out first.
  void end(LinkChannel& channel, bool drains);
  void remove(const LinkChannel& channel) { channels_.remove(channel); }
  bool is_only(const LinkChannel& channel) const {
    return channels_.size() == 1 && channels_.find(channel.communicator()) == &channel;
  }
  void close_if_unused();
  void set_streams_in_use();
  // Tells the channels what was delivered of theirs, and for how long it was under way.
  void take_account();

 private:
  enum class State { kUp, kClosing, kDown };

  TcpLink(Reactor& reactor, TcpLinkOptions options);

  // For the streams, which are parts of it: any of these may end the link; is_up() then turns
  // false.
  friend class Stream;
  bool is_up() const { return state_ != State::kDown; }
  void ready(Stream& stream);  // the socket wants service
  void moved(LinkChannel* channel, std::size_t out_bytes, std::size_t in_bytes) {
    if (channel != nullptr) channel->moved(out_bytes, in_bytes);
  }
  TxFrame* next_frame(Stream& stream);  // null: nothing to send
  void frame_sent(Stream& stream, TxFrame* frame);
  static bool is_own(FrameType type);  // handled by the link
  Status heard(const FrameHeader& own_frame);
  Result<FramePlace> place_for(const FrameHeader& header);
  // `payload_crc`: of the payload, as it came; 0 where it is not checked.
  Status arrived(const FramePlace& place, const FrameHeader& header, std::uint32_t payload_crc);
  void goodbye_received();
  void never_used();  // a stream that the peer had not taken up has ended

  void on_wake() override;
  void on_failure(const Status& why) override;
  void tick() override;
  void tick_failed(const Status& why) override { on_failure(why); }

  void serve(Stream& stream);
  void broke(const Stream& stream, const Status& why);
  void write_all();
  void settle();
  bool has_departed() const { return goodbyes_heard_ + unused_ == streams_.size(); }
  void departed_if_over();
  void close();
  void drain();
  void drain_on();
  void watch_delivery(std::uint64_t pause_ns);
  void leave(LinkChannel& channel, bool drains);
  bool is_delivered() const;  // goodbyes included
  std::size_t undelivered_bytes() const;
  bool is_silent(const Stream& stream, std::uint64_t now_ns) const;
  std::uint64_t tick_period_ns() const;
  void forgive_own_absence(std::uint64_t now_ns);
  void fail(const Status& why);
  void stop_sharing();
  void shut_down();
  void end_all();

  const std::shared_ptr<Reactor> reactor_;
  const std::shared_ptr<LinkClock> clock_;
  OwnedTimers timers_;  // of its end
  const TcpLinkOptions options_;
  State state_ = State::kUp;
  ChannelList channels_;
  std::vector<std::unique_ptr<Stream>> streams_;
  LinkMark mark_{};
  std::size_t first_streams_ = 0;  // that it began with
  std::size_t asked_streams_ = 0;
  std::size_t in_use_ = ~std::size_t{0};
  std::size_t first_stream_ = 0;  // whose turn it is to take a frame first
  std::size_t goodbyes_heard_ = 0;
  std::size_t unused_ = 0;                   // streams that the peer never took up
  bool is_heard_ = false;                    // something came
  std::size_t left_ = 0;                     // undelivered_bytes() when the drain timer was set
  std::uint64_t delivered_bytes_ = 0;        // as of the last take_account()
  std::shared_ptr<SharedLinks> shared_;      // null: not to be found
  LinkTerms terms_;                          // where it is shared
  std::shared_ptr<TcpLink> keep_alive_;      // itself, while it drains
  std::optional<Deliveries::One> delivery_;  // while it drains, of the last channel in use
};

}  // namespace riffle
