#include "plugin/transport/tcp/tcp_pending.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/transport/base/deliveries.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/reactor/fork_registry.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
namespace {

constexpr std::chrono::seconds kLongestAtExit(5);

// What closed links have to deliver: exit() waits for all of them together. Owners that close one
// link after the other would wait for each.
struct UntilExit {
  std::shared_ptr<Deliveries> deliveries = std::make_shared<Deliveries>();
  std::uint32_t generation = fork_registry::generation();

  // A fork may have its parent's locked.
  bool is_of_this_process() const { return generation == fork_registry::generation(); }
};

std::atomic<const UntilExit*> until_exit{nullptr};  // outlives every thread, once there

void wait_at_exit() {
  const UntilExit* const all = until_exit;
  if (all->is_of_this_process()) (void)all->deliveries->wait(kLongestAtExit);
}

std::shared_ptr<Deliveries> deliveries_until_exit() {
  static std::once_flag first;
  std::call_once(first, [] {
    until_exit = new UntilExit;
    (void)std::atexit(wait_at_exit);
  });
  const UntilExit* const all = until_exit;
  return all->is_of_this_process() ? all->deliveries : nullptr;
}

std::shared_ptr<Link> make_link(Reactor& reactor, const TransportOptions& transport,
                                StreamSet* streams, std::uint64_t communicator,
                                const std::string& peer, const std::shared_ptr<NicTraffic>& nics) {
  std::vector<Connection> connections = streams->take();
  for (const Connection& one : connections) {
    retry_within(one.socket.get(), transport.peer_timeout_ns);
  }
  return TcpLink::create(reactor, std::move(connections),
                         {.peer = peer,
                          .peer_timeout_ns = transport.peer_timeout_ns,
                          .payload_crc = transport.payload_crc && !transport.encryption.is_on},
                         {.peer = peer,
                          .communicator = communicator,
                          .deliveries = deliveries_until_exit(),
                          .traffic = {nics, &nics->of_net()}});
}

}  // namespace

TcpConnecting::TcpConnecting(Reactor& reactor, const TransportOptions& transport,
                             const HandleContent& to, const std::vector<NicAddress>& own,
                             const std::string& role, Transport::Linked linked)
    : reactor_(reactor),
      transport_(transport),
      peer_(role + " " + to_text(to.endpoints.front())),
      nics_(NicTraffic::of(own)),
      linked_(std::move(linked)) {
  const auto streams = static_cast<std::uint16_t>(
      streams_for(to.endpoints, own, streams_to_each_of(1, transport.streams)));
  Hello hello = {.communicator = to.communicator, .session = random_u64(), .streams = streams};
  const std::uint64_t deadline_ns = Reactor::now_ns() + transport.connect_timeout_ns;
  for (; hello.stream < streams; ++hello.stream) {
    connectors_.push_back(std::make_unique<Connector>(
        reactor,
        ConnectorOptions{.to = to,
                         .hello = hello,
                         .own = own,
                         .deadline_ns = deadline_ns,
                         .congestion = transport.congestion,
                         .encryption = transport.encryption},
        [this, hello](Result<Connection> one) { joined(hello, std::move(one)); }));
  }
}

void TcpConnecting::joined(const Hello& hello, Result<Connection> connection) {
  if (!connection) return finish(connection.status());
  Result<std::shared_ptr<Link>> link = std::shared_ptr<Link>();
  catching(
      [&] {
        streams_.add(std::move(*connection), hello);
        if (!streams_.is_complete()) return;
        link = make_link(reactor_, transport_, &streams_, hello.communicator, peer_, nics_);
      },
      [&](const Status& why) { link = why; });
  if (!link || *link != nullptr) finish(std::move(link));
}

void TcpConnecting::finish(Result<std::shared_ptr<Link>> result) {
  connectors_.clear();
  const auto linked = std::move(linked_);
  linked(std::move(result));  // may destroy this
}

TcpAccepting::TcpAccepting(Reactor& reactor, const TransportOptions& transport,
                           TcpListener& listener, const std::string& role, Transport::Linked linked)
    : reactor_(reactor),
      transport_(transport),
      role_(role),
      nics_(NicTraffic::of(listener.device().addresses)),
      communicator_(listener.content().communicator),
      linked_(std::move(linked)) {
  Acceptor::Owner* const self = this;
  acceptor_ = std::make_unique<Acceptor>(reactor, listener.take_sockets(), listener.content(), self,
                                         transport.encryption);
}

void TcpAccepting::joined(Connection connection, const Hello& hello) {
  Result<std::shared_ptr<Link>> link = std::shared_ptr<Link>();
  catching(
      [&] {
        const std::string peer = role_ + " " + to_text(remote_address_of(connection.socket.get()));
        streams_.add(std::move(connection), hello);
        if (!streams_.is_complete()) return;
        link = make_link(reactor_, transport_, &streams_, communicator_, peer, nics_);
      },
      [&](const Status& why) { link = why; });
  if (!link || *link != nullptr) finish(std::move(link));
}

void TcpAccepting::finish(Result<std::shared_ptr<Link>> result) {
  acceptor_.reset();
  const auto linked = std::move(linked_);
  linked(std::move(result));  // may destroy this
}

}  // namespace riffle
