#include "plugin/transport/tcp/tcp_mesh.h"

#include <algorithm>

#include "plugin/config/log.h"
#include "plugin/transport/base/caught.h"
#include "plugin/transport/base/mesh.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/handshake/acceptor.h"
#include "plugin/transport/handshake/connector.h"
#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
namespace {

class TcpMesh final : public TransportMesh, Acceptor::Owner, Reactor::WakeHandler {
 public:
  TcpMesh(Reactor& reactor, const TransportOptions& transport, TcpListener& listener,
          std::vector<HandleContent> handles, int rank, const MeshOptions& options, FrameSink* sink)
      : reactor_(reactor.shared_from_this()),
        handles_(std::move(handles)),
        rank_(rank),
        transport_(transport),
        options_(options),
        streams_(streams_to_each_of(static_cast<int>(handles_.size()) - 1, transport.streams)),
        own_(listener.device().addresses),
        communicator_(handles_.front().communicator),
        nics_(NicTraffic::of(own_)),
        sink_(sink),
        timers_(reactor_.get(), [this](const Status& why) { failed(why); }) {
    for (std::size_t r = 0; r < handles_.size(); ++r) {
      peers_.push_back(std::make_unique<Peer>(*this, static_cast<int>(r)));
    }
    HandleContent gate = listener.content();
    gate.communicator = communicator_;
    Acceptor::Owner* const self = this;
    acceptor_ = std::make_unique<Acceptor>(*reactor_, listener.take_sockets(), gate, self,
                                           transport_.encryption);
    set_doors();
  }
  ~TcpMesh() override {
    abort();
    reactor_->forget(this);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::uint64_t now_ns() const override { return Reactor::now_ns(); }

  void open(int peer) override { at(peer).ask(); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    if (TcpLink* const link = at(peer).link()) link->send(header, payload, cookie, priority);
  }
  LinkActivity activity(int peer) override {
    TcpLink* const link = at(peer).link();
    return link != nullptr ? link->activity() : LinkActivity{};
  }
  int hops(int peer) const override {
    const TcpLink* const link = peers_.at(static_cast<std::size_t>(peer))->link();
    return link != nullptr && peer > rank_ ? link->hops() : -1;
  }
  NicBytes others_on_nics() override { return nics_->others(communicator_); }
  void hint(int peer, RateHints hints) override {
    if (TcpLink* const link = at(peer).link()) link->hint(hints);
  }
  void set_peer_weights(std::span<const int> weights) override {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank_) at(peer).use(weights.empty() ? 1 : weights[peer]);
    }
    set_doors();
  }
  void dismiss(int peer) override { at(peer).close(); }
  void abort() override {
    sink_ = nullptr;
    acceptor_.reset();
    for (const auto& peer : peers_) peer->abort();
  }
  void close() override {
    sink_ = nullptr;
    acceptor_.reset();
    for (const auto& peer : peers_) peer->close();
  }
  LinkCounters counters(int peer) const override {
    const TcpLink* const link = peers_.at(static_cast<std::size_t>(peer))->link();
    return link == nullptr ? LinkCounters{} : link->counters();
  }
  std::optional<WireAccount> wire_account(int peer) const override {
    const TcpLink* const link = peers_.at(static_cast<std::size_t>(peer))->link();
    return link == nullptr ? std::nullopt : link->wire_account();
  }

 private:
  // One other node: first the streams that gather, then the link.
  class Peer {
   public:
    Peer(TcpMesh& mesh, int rank)
        : mesh_(mesh),
          rank_(rank),
          address_(to_text(mesh.handles_[static_cast<std::size_t>(rank)].endpoints.front())),
          name_("node " + std::to_string(rank) + " (" + address_ + ")") {}
    ~Peer() { abort(); }

    TcpLink* link() const { return link_.get(); }
    Status admit(const Hello& hello) const {
      if (state_ == State::kOver || (state_ == State::kUp && !is_one_more(hello))) {
        return remote_error(name_ + " is already connected or lost");
      }
      return check_streams(hello);
    }
    void joined(Connection connection, const Hello& hello) {
      if (state_ == State::kUp) {
        link_->add(std::move(connection), mesh_.rank_ > rank_);
        return mesh_.set_doors();
      }
      streams_.add(std::move(connection), hello);
      start_if_complete();
    }
    // Are there streams that it is to connect to this node?
    bool is_expected() const {
      if (mesh_.rank_ > rank_) return false;
      return state_ == State::kOpening || (state_ == State::kUp && link_->streams() < asked_);
    }
    // Frames go over so many times the streams that the link began with. The side that connected it
    // connects what is missing; if that fails, the streams that there are carry all.
    void use(int weight) {
      weight_ = static_cast<std::size_t>(weight);
      if (state_ != State::kUp) return;
      const std::size_t streams = std::min<std::size_t>(weight_ * first_, kMaxStreams);
      link_->use_streams(streams);
      if (mesh_.rank_ > rank_) return connect_up_to(streams);
      asked_ = std::max(asked_, streams);
    }

    void ask() {
      if (state_ != State::kIdle) return;
      state_ = State::kOpening;
      const std::uint64_t deadline = Reactor::now_ns() + mesh_.options_.connect_timeout_ns;
      if (const Status s = check_encryption(); !s) {
        timer_ = mesh_.timers_.call_at(Reactor::now_ns(), [this, s] { lost(s); });
      } else if (mesh_.rank_ > rank_) {
        connect(deadline);
      } else {
        timer_ = mesh_.timers_.call_at(deadline, [this] {
          lost(timeout_error("did not connect to this node within RIFFLE_CONNECT_TIMEOUT"));
        });
        mesh_.reactor_->wake(&mesh_);  // its streams may be here already
        mesh_.set_doors();
      }
    }
    void start_if_complete() {
      if (state_ != State::kOpening || !streams_.is_complete()) return;
      stop_opening();
      session_ = streams_.session();
      std::vector<Connection> connections = streams_.take();
      first_ = asked_ = connections.size();
      link_ = TcpLink::create(
          *mesh_.reactor_, std::move(connections),
          {.number = rank_,
           .peer = name_,
           .on_lost = [this](const Status& why) { lost(why); },
           .communicator = mesh_.communicator_,
           .peer_timeout_ns = mesh_.options_.peer_timeout_ns,
           .payload_crc = mesh_.transport_.payload_crc && !mesh_.transport_.encryption.is_on,
           .traffic = {mesh_.nics_, &mesh_.nics_->of_mesh(mesh_.communicator_)}},
          mesh_.sink_);
      state_ = State::kUp;
      use(static_cast<int>(weight_));
      mesh_.set_doors();
      mesh_.sink_->opened(rank_);
    }
    void abort() {
      end();
      if (link_ != nullptr) std::exchange(link_, nullptr)->abort();
    }
    void close() {
      end();
      if (link_ != nullptr) std::exchange(link_, nullptr)->close();
    }

   private:
    // All handles are here, so all nodes notice at once, and not the two ends of one link.
    Status check_encryption() const {
      return check_same_mode(mesh_.handles_[static_cast<std::size_t>(rank_)].encryption,
                             mode_of(mesh_.transport_.encryption));
    }
    void lost(const Status& why) {
      unreachable(Status(why.code(), address_ + ": " + why.message()));
    }
    // `why` tells the address.
    void unreachable(const Status& why) {
      end();
      link_.reset();
      mesh_.sink_->lost(rank_, why);
    }
    enum class State { kIdle, kOpening, kUp, kOver };

    void connect(std::uint64_t deadline_ns) {
      const HandleContent& to = mesh_.handles_[static_cast<std::size_t>(rank_)];
      const auto streams =
          static_cast<std::size_t>(streams_for(to.endpoints, mesh_.own_, mesh_.streams_));
      const std::uint64_t session = random_u64();
      for (std::size_t i = 0; i < streams; ++i) {
        const Hello own = hello(i, streams, session);
        connectors_.push_back(
            std::make_unique<Connector>(*mesh_.reactor_,
                                        ConnectorOptions{.to = to,
                                                         .hello = own,
                                                         .own = mesh_.own_,
                                                         .deadline_ns = deadline_ns,
                                                         .congestion = mesh_.transport_.congestion,
                                                         .encryption = mesh_.transport_.encryption},
                                        [this, own](Result<Connection> one) {
                                          mesh_.guarded([&] { connected(std::move(one), own); });
                                        }));
      }
    }
    void connect_up_to(std::size_t streams) {
      for (; asked_ < streams; ++asked_) {
        connectors_.push_back(std::make_unique<Connector>(
            *mesh_.reactor_,
            ConnectorOptions{.to = mesh_.handles_[static_cast<std::size_t>(rank_)],
                             .hello = hello(asked_, asked_ + 1, session_),
                             .own = mesh_.own_,
                             .deadline_ns = mesh_.now_ns() + mesh_.options_.connect_timeout_ns,
                             .congestion = mesh_.transport_.congestion,
                             .encryption = mesh_.transport_.encryption},
            [this](Result<Connection> one) { mesh_.guarded([&] { added(std::move(one)); }); }));
      }
    }
    void connected(Result<Connection> one, const Hello& own) {
      if (!one && one.status().code() == Code::kInternal) {
        return mesh_.failed(one.status());  // this side's, not the peer's
      }
      if (!one) return unreachable(one.status());
      joined(std::move(*one), own);
    }
    void added(Result<Connection> one) {
      if (one) return link_->add(std::move(*one), true);
      log_info("going on without one more connection to {}: {}", name_, one.status().message());
    }
    Hello hello(std::size_t stream, std::size_t streams, std::uint64_t session) const {
      return {.communicator = mesh_.communicator_,
              .session = session,
              .rank = static_cast<std::uint32_t>(mesh_.rank_),
              .stream = static_cast<std::uint16_t>(stream),
              .streams = static_cast<std::uint16_t>(streams)};
    }
    bool is_one_more(const Hello& h) const {
      return h.session == session_ && h.stream >= first_ && link_->streams() < kMaxStreams;
    }
    void stop_opening() {
      connectors_.clear();
      mesh_.timers_.cancel(timer_);
    }
    void end() {
      stop_opening();
      streams_.clear();
      state_ = State::kOver;
      // What follows tells of a loss, and a door that cannot be opened must not keep it.
      catching([this] { mesh_.set_doors(); },
               [](const Status& why) { log_caught("at the doors of a mesh", why); });
    }

    TcpMesh& mesh_;
    const int rank_;
    const std::string address_, name_;
    State state_ = State::kIdle;
    StreamSet streams_;          // until the link is up
    std::uint64_t session_ = 0;  // of the link's streams
    std::size_t weight_ = 1;     // Mesh::set_peer_weights
    std::size_t first_ = 0;      // streams that it began with
    std::size_t asked_ = 0;      // ... that it has or that are being connected
    std::vector<std::unique_ptr<Connector>> connectors_;
    std::uint64_t timer_ = 0;
    std::shared_ptr<TcpLink> link_;
  };

  // Open while any peer is to connect; a connection that comes earlier waits in the kernel's queue.
  void set_doors() {
    if (acceptor_ == nullptr) return;
    acceptor_->expect_peers(std::any_of(peers_.begin(), peers_.end(),
                                        [](const auto& peer) { return peer->is_expected(); }));
  }
  Peer& at(int peer) {
    RIFFLE_CHECK(peer >= 0 && peer < size() && peer != rank_, "no such peer");
    return *peers_[static_cast<std::size_t>(peer)];
  }

  Status admit(const Hello& hello) override {
    if (hello.rank >= peers_.size() || static_cast<int>(hello.rank) <= rank_) {
      return remote_error("it says it is node " + std::to_string(hello.rank) + " of " +
                          std::to_string(peers_.size()) + ", which does not connect to node " +
                          std::to_string(rank_));
    }
    return at(static_cast<int>(hello.rank)).admit(hello);
  }
  void joined(Connection one, const Hello& hello) override {
    guarded([&] { at(static_cast<int>(hello.rank)).joined(std::move(one), hello); });
  }
  void on_wake() override {
    for (const auto& peer : peers_) peer->start_if_complete();
  }
  void on_failure(const Status& why) override { failed(why); }
  void failed(const Status& why) override {
    if (sink_ != nullptr) sink_->failed(why);
  }
  // For calls from below, where an exception would be one of the peer's connection alone.
  template <class F>
  void guarded(F&& f) {
    catching(f, [this](const Status& why) { failed(why); });
  }

  const std::shared_ptr<Reactor> reactor_;
  const std::vector<HandleContent> handles_;
  const int rank_;
  const TransportOptions transport_;
  const MeshOptions options_;
  const int streams_;  // to each peer of a lower rank; the others connect with theirs
  const std::vector<NicAddress> own_;
  const std::uint64_t communicator_;
  const std::shared_ptr<NicTraffic> nics_;
  FrameSink* sink_;
  OwnedTimers timers_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace

std::unique_ptr<TransportMesh> make_tcp_mesh(Reactor& reactor, const TransportOptions& transport,
                                             TcpListener& listener,
                                             std::vector<HandleContent> handles, int rank,
                                             const MeshOptions& options, FrameSink* sink) {
  RIFFLE_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < handles.size(), "rank out of range");
  return std::make_unique<TcpMesh>(reactor, transport, listener, std::move(handles), rank, options,
                                   sink);
}

}  // namespace riffle
