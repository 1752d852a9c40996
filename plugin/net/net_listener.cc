#include "plugin/net/net_listener.h"

#include "plugin/config/config.h"
#include "plugin/net/net_options.h"
#include "plugin/transport/reactor/fork_registry.h"
#include "plugin/transport/tcp/tcp_listener.h"

namespace riffle::net {

Result<Listener*> Listener::open(int device, std::uint64_t comm_id, Handle* handle) {
  auto bound = BoundListener::bind(device, comm_id);
  if (!bound) return bound.status();
  std::unique_ptr<Listener> listener(new Listener);
  listener->reactor_ = Reactor::acquire();
  listener->generation_ = fork_registry::generation();
  listener->communicator_ = (*bound)->content().communicator;
  *handle = (*bound)->handle();
  Acceptor::Owner* const owner = listener.get();
  listener->reactor_->run_and_wait([&] {
    listener->acceptor_ = std::make_unique<Acceptor>(*listener->reactor_, (*bound)->take_sockets(),
                                                     (*bound)->content(), owner);
  });
  return listener.release();
}

Status Listener::admit(const Hello& hello) {
  if (ready_.load(std::memory_order_relaxed) != nullptr) {
    return remote_error("this listener has its one connection already");
  }
  return check_streams(hello);
}

void Listener::joined(Fd socket, const Hello& hello) {
  const std::string peer = "sender " + to_text(remote_address_of(socket.get()));
  streams_.add(std::move(socket), hello);
  if (!streams_.is_complete()) return;
  acceptor_.reset();
  auto connection = std::make_unique<RecvConnection>(*reactor_);
  connection->attach(streams_.take(), link_options(peer, communicator_));
  ready_.store(connection.release(), std::memory_order_release);
}

Result<RecvConnection*> Listener::accept() {
  if (is_taken_) return internal_error("a listener accepts one connection");
  if (RecvConnection* const connection = ready_.load(std::memory_order_acquire)) {
    is_taken_ = true;
    return connection;
  }
  if (generation_ != fork_registry::generation()) {
    return system_error("this listener belongs to the parent of this forked process");
  }
  if (deadline_ns_ == 0) deadline_ns_ = connect_deadline_ns();
  if (Reactor::now_ns() > deadline_ns_) {
    return timeout_error("no sender connected within RIFFLE_CONNECT_TIMEOUT (" +
                         std::to_string(config().connect_timeout_s) + " s)");
  }
  return nullptr;
}

void Listener::close(Listener* listener) {
  if (listener->generation_ != fork_registry::generation()) return;  // the parent's
  listener->reactor_->run_and_wait([listener] {
    listener->acceptor_.reset();
    listener->streams_.clear();
  });
  RecvConnection* const unclaimed = listener->ready_.load(std::memory_order_acquire);
  if (unclaimed != nullptr && !listener->is_taken_) Connection::close(unclaimed);
  delete listener;
}

}  // namespace riffle::net
