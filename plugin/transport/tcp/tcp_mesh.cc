#include "plugin/transport/tcp/tcp_mesh.h"

#include <algorithm>

#include "plugin/config/caught.h"
#include "plugin/transport/base/mesh.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/handshake/acceptor.h"
#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/tcp/tcp_peer.h"

namespace riffle {
namespace {

MeshParts parts_of(Reactor& reactor, const TransportOptions& transport, const TcpListener& listener,
                   std::vector<HandleContent> handles, int rank, const MeshOptions& options,
                   FrameSink* sink) {
  MeshParts parts;
  parts.reactor = reactor.shared_from_this();
  parts.handles = std::move(handles);
  parts.rank = rank;
  parts.transport = transport;
  parts.options = options;
  parts.streams = streams_to_each_of(static_cast<int>(parts.handles.size()) - 1, transport.streams);
  parts.own = listener.device().addresses;
  parts.communicator = parts.handles.front().communicator;
  parts.secret = listener.content().secret;
  parts.nics = NicTraffic::of(parts.own);
  if (transport.threads.count == 1) parts.shared = SharedLinks::of(reactor);
  parts.streams =
      std::min(parts.streams, kMaxStreams / (1 + static_cast<int>(options.further.size())));
  parts.sink = sink;
  return parts;
}

class TcpMesh final : public TransportMesh,
                      Acceptor::Owner,
                      TcpPeer::Owner,
                      SharedLinks::Mesh,
                      Reactor::WakeHandler {
 public:
  TcpMesh(MeshParts parts, TcpListener& listener)
      : parts_(std::move(parts)),
        timers_(parts_.reactor.get(), [this](const Status& why) { failed(why); }) {
    for (const auto& reactor : parts_.options.further) {
      parts_.further.push_back(std::make_unique<TcpPart>(parts_, reactor));
    }
    TcpPeer::Owner& owner = *this;
    for (int r = 0; r < static_cast<int>(parts_.handles.size()); ++r) {
      peers_.push_back(std::make_unique<TcpPeer>(parts_, owner, timers_, r));
    }
    HandleContent gate = listener.content();
    gate.communicator = parts_.communicator;
    Acceptor::Owner* const self = this;
    acceptor_ = std::make_unique<Acceptor>(*parts_.reactor, listener.take_sockets(), gate, self,
                                           parts_.transport.encryption);
    set_doors();
    if (parts_.shared != nullptr) parts_.shared->add(parts_.communicator, parts_.rank, *this);
  }
  ~TcpMesh() override {
    abort();
    parts_.reactor->forget(this);
    for (auto& part : parts_.further) {
      part->stop_telling();
      part->run_and_wait([&part] { part.reset(); });
    }
  }

  int rank() const override { return parts_.rank; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::uint64_t now_ns() const override { return Reactor::now_ns(); }

  void open(int peer) override { at(peer).ask(); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    if (LinkChannel* const link = at(peer).channel()) link->send(header, payload, cookie, priority);
  }
  LinkActivity activity(int peer) override {
    LinkChannel* const channel = at(peer).channel();
    LinkActivity activity = channel != nullptr ? channel->activity() : LinkActivity{};
    for (const auto& part : parts_.further) {
      const LinkActivity more = part->activity_of(peer);
      activity.out_bytes += more.out_bytes;
      activity.in_bytes += more.in_bytes;
      activity.busy_ns = std::max(activity.busy_ns, more.busy_ns);
    }
    return activity;
  }
  int hops(int peer) const override {
    const TcpLink* const link = link_to(peer);
    return link != nullptr ? link->hops() : -1;
  }
  NicBytes others_on_nics() override { return parts_.nics->others(parts_.communicator); }
  void hint(int peer, RateHints hints) override {
    if (LinkChannel* const channel = at(peer).channel()) channel->hint(hints);
  }
  void set_peer_weights(std::span<const int> weights) override {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != parts_.rank) at(peer).use(weights.empty() ? 1 : weights[peer]);
    }
    set_doors();
  }
  void dismiss(int peer) override { at(peer).close(); }
  void abort() override {
    retire();
    for (const auto& part : parts_.further) part->run_and_wait([&part] { part->abort(); });
    for (const auto& peer : peers_) peer->abort();
  }
  void close() override {
    retire();
    for (const auto& part : parts_.further) part->run_and_wait([&part] { part->close(); });
    for (const auto& peer : peers_) peer->close();
  }
  std::vector<MeshPart*> parts() override {
    std::vector<MeshPart*> all;
    for (const auto& part : parts_.further) all.push_back(part.get());
    return all;
  }
  LinkCounters counters(int peer) const override {
    const LinkChannel* const channel = peers_.at(static_cast<std::size_t>(peer))->channel();
    LinkCounters sum = channel == nullptr ? LinkCounters{} : channel->counters();
    for (const auto& part : parts_.further) {
      const LinkCounters more = part->counters_of(peer);
      sum.bytes_sent += more.bytes_sent;
      sum.bytes_received += more.bytes_received;
      sum.frames_sent += more.frames_sent;
      sum.frames_received += more.frames_received;
    }
    return sum;
  }
  std::size_t descriptors_to_open() const override {
    std::size_t sum = 0;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != parts_.rank) sum += peers_[static_cast<std::size_t>(peer)]->descriptors_to_open();
    }
    return sum;
  }
  std::optional<WireAccount> wire_account(int peer) const override {
    const TcpLink* const link = link_to(peer);
    return link == nullptr ? std::nullopt : link->wire_account();
  }

 private:
  void retire() {
    parts_.sink = nullptr;
    acceptor_.reset();
    if (parts_.shared != nullptr) parts_.shared->remove(*this);
  }
  // Open while any peer is to connect; a connection that comes earlier waits in the kernel's queue.
  void set_doors() override {
    if (acceptor_ == nullptr) return;
    acceptor_->expect_peers(std::any_of(peers_.begin(), peers_.end(),
                                        [](const auto& peer) { return peer->is_expected(); }));
  }
  TcpPeer& at(int peer) {
    RIFFLE_CHECK(peer >= 0 && peer < size() && peer != rank(), "no such peer");
    return *peers_[static_cast<std::size_t>(peer)];
  }
  const TcpLink* link_to(int peer) const {
    const LinkChannel* const channel = peers_.at(static_cast<std::size_t>(peer))->channel();
    return channel != nullptr ? channel->link() : nullptr;
  }
  bool connects_to_this_node(std::uint32_t rank) const {
    return rank < peers_.size() && static_cast<int>(rank) > parts_.rank;
  }

  Status admit(const Hello& hello) override {
    if (!connects_to_this_node(hello.rank)) {
      return remote_error("it says it is node " + std::to_string(hello.rank) + " of " +
                          std::to_string(peers_.size()) + ", which does not connect to node " +
                          std::to_string(rank()));
    }
    return at(static_cast<int>(hello.rank)).admit(hello);
  }
  void joined(Connection one, const Hello& hello) override {
    catching([&] { at(static_cast<int>(hello.rank)).joined(std::move(one), hello); },
             [this](const Status& why) { failed(why); });
  }
  SharedLinks::Verdict join(TcpLink& link, const JoinFrame& ask) override {
    if (!connects_to_this_node(ask.from)) return SharedLinks::Verdict::kRefused;
    SharedLinks::Verdict verdict = SharedLinks::Verdict::kRefused;
    catching([&] { verdict = at(static_cast<int>(ask.from)).join(link, ask); },
             [this](const Status& why) { failed(why); });
    return verdict;
  }
  void look_again() override { parts_.reactor->wake(this); }
  void on_wake() override {
    for (int peer = 0; peer < size(); ++peer) {
      TcpPeer& one = *peers_[static_cast<std::size_t>(peer)];
      one.start_if_complete();
      if (parts_.shared != nullptr && one.wants_ask()) parts_.shared->wants(*this, peer);
    }
  }
  void on_failure(const Status& why) override { failed(why); }
  void failed(const Status& why) override {
    if (parts_.sink != nullptr) parts_.sink->failed(why);
  }

  MeshParts parts_;
  OwnedTimers timers_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::unique_ptr<TcpPeer>> peers_;
};

}  // namespace

std::unique_ptr<TransportMesh> make_tcp_mesh(Reactor& reactor, const TransportOptions& transport,
                                             TcpListener& listener,
                                             std::vector<HandleContent> handles, int rank,
                                             const MeshOptions& options, FrameSink* sink) {
  RIFFLE_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < handles.size(), "rank out of range");
  return std::make_unique<TcpMesh>(
      parts_of(reactor, transport, listener, std::move(handles), rank, options, sink), listener);
}

}  // namespace riffle
