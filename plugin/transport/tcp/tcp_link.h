// TcpLink: everything between this process and one peer: several streams, any frame on any stream.
// A stream that can take data takes the next whole frame, so a slow stream does not set the pace.
//
// Alive: a stream that sent nothing for a quarter of the peer timeout sends a heartbeat; a peer
// from which a stream heard nothing for the peer timeout is lost, whether it died, hangs or was
// stopped. Time in which this process did not run itself does not count: when a whole job was
// suspended, its peers slept as well.
//
// End: close() sends what is queued, then GOODBYE on every stream, ends this direction and waits
// for the peer's end, all behind the scenes; so an early closer is not mistaken for a lost peer. It
// goes on for as long as bytes leave; 5 s (drain_ns) without any end it, with a warning if
// something was not delivered. abort() drops everything at once. Reactor thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugin/transport/base/frame_sink.h"
#include "plugin/transport/base/link.h"
#include "plugin/transport/base/link_activity.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/device/nic_traffic.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/tcp/stream.h"
#include "plugin/transport/tcp/tcp_account.h"
#include "plugin/transport/tcp/tx_queue.h"

namespace riffle {

struct TcpLinkOptions {
  int number = 0;                              // what the sink knows the peer as
  std::string peer;                            // for messages: "node 3 (10.0.0.3:4000)"
  std::function<void(const Status&)> on_lost;  // told in place of the sink, where set
  std::uint64_t communicator = 0;  // stamped on every frame; frames of another one are refused
  std::uint64_t peer_timeout_ns = 60'000'000'000;
  bool payload_crc = false;
  // Of the NICs' account; null: the link's bytes are not in it.
  std::shared_ptr<NicTraffic::Slot> traffic;
  std::uint64_t drain_ns = 5'000'000'000;  // how long close() bears with a peer that takes nothing
};

class TcpLink final : public Link,
                      public std::enable_shared_from_this<TcpLink>,
                      private Reactor::WakeHandler {
 public:
  // Without a sink it needs one by set_sink() before the reactor's next turn.
  static std::shared_ptr<TcpLink> create(Reactor& reactor, std::vector<Connection> connections,
                                         TcpLinkOptions options, FrameSink* sink = nullptr);
  ~TcpLink() override;

  void set_sink(FrameSink* sink) override { sink_ = sink; }
  const std::string& peer() const override { return options_.peer; }
  std::size_t streams() const override { return streams_.size(); }
  void send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie,
            std::uint64_t priority) override;
  void flush() override { on_wake(); }
  void close() override;
  void abort() override;

  // As in Mesh.
  LinkActivity activity();
  int hops() const;  // precondition: this side accepted the connections
  // One more stream, while the link is up. `is_proven`: the peer has it, or is going to (stream.h).
  void add(Connection connection, bool is_proven);
  // Frames are sent on so many streams from now on, or on all that there are.
  void use_streams(std::size_t streams) { in_use_ = streams; }
  void hint(RateHints hints) { hints_ = hints; }

  LinkCounters counters() const;
  // The busiest stream's time, all streams' retransmits, the least round trip. Asks the kernel.
  std::optional<WireAccount> wire_account() const;

 private:
  enum class State { kUp, kClosing, kDown };

  TcpLink(Reactor& reactor, TcpLinkOptions options, FrameSink* sink);

  // For the streams, which are parts of it: any of these may end the link; is_up() then turns
  // false.
  friend class Stream;
  bool is_up() const { return state_ != State::kDown; }
  void ready(Stream& stream);  // the socket wants service
  void moved(std::size_t out_bytes, std::size_t in_bytes);
  TxFrame* next_frame(Stream& stream);  // null: nothing to send
  void frame_sent(Stream& stream, TxFrame* frame);
  Result<std::byte*> get_receive_buffer(const FrameHeader& header);
  Status arrived(const FrameHeader& header, std::byte* payload);
  void goodbye_received();

  void on_wake() override;
  void on_failure(const Status& why) override;

  void serve(Stream& stream);
  void broke(const Stream& stream, const Status& why);
  void write_all();
  void settle();
  void drain();
  void drain_on();
  std::uint64_t bytes_sent() const;
  std::uint64_t bytes_received() const;
  std::size_t undelivered_bytes() const;
  Status check_alive(Stream& stream, std::uint64_t now_ns);
  std::uint64_t tick_period_ns() const;
  void forgive_own_absence(std::uint64_t now_ns);
  void tick();
  void schedule_tick();
  void fail(const Status& why);
  void shut_down();

  const std::shared_ptr<Reactor> reactor_;
  OwnedTimers timers_;
  const TcpLinkOptions options_;
  FrameSink* sink_;
  State state_ = State::kUp;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::size_t in_use_ = ~std::size_t{0};
  std::size_t first_stream_ = 0;  // whose turn it is to take a frame first
  TxQueue queue_;
  std::size_t goodbyes_heard_ = 0;
  std::uint64_t tick_due_ns_ = 0;
  std::uint64_t drained_to_ = 0;  // bytes_sent() when the drain timer was set
  RateHints hints_, hints_of_peer_;
  std::uint64_t busy_ns_ = 0;
  std::uint64_t frames_sent_ = 0;
  std::uint64_t frames_received_ = 0;
  std::shared_ptr<TcpLink> keep_alive_;  // itself, while it drains
};

}  // namespace riffle
