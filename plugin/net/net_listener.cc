#include "plugin/net/net_listener.h"

#include "plugin/config/caught.h"
#include "plugin/transport/factory.h"
#include "plugin/transport/reactor/fork_registry.h"
#include "topology/base/time.h"

namespace riffle::net {

Result<Listener*> Listener::open(const TransportOptions& options, int device, std::uint64_t comm_id,
                                 Handle* handle) {
  const auto transport = make_transport(options);
  if (!transport) return transport.status();
  auto bound = (*transport)->listen(device, comm_id);
  if (!bound) return bound.status();
  std::unique_ptr<Listener> listener(new Listener);
  listener->reactor_ = Reactor::acquire(options);
  listener->generation_ = fork_registry::generation();
  listener->timeout_ns_ = options.connect_timeout_ns;
  *handle = (*bound)->handle();
  listener->reactor_->run_and_wait([&] {
    listener->pending_ =
        (*transport)
            ->accept(*listener->reactor_, std::move(*bound), "sender",
                     [self = listener.get()](const Result<std::shared_ptr<Link>>& link) {
                       self->linked(link);
                     });
  });
  return listener.release();
}

void Listener::linked(const Result<std::shared_ptr<Link>>& link) {
  failure_ = link.status();
  if (link) {
    catching(
        [&] {
          auto connection = std::make_unique<RecvConnection>(*reactor_);
          connection->attach(*link);
          ready_.store(connection.release(), std::memory_order_release);
        },
        [this](const Status& why) { failure_ = why; });
  }
  if (!failure_) has_failed_.store(true, std::memory_order_release);
  pending_.reset();
}

Result<RecvConnection*> Listener::accept() {
  if (is_taken_) return internal_error("a listener accepts one connection");
  if (RecvConnection* const connection = ready_.load(std::memory_order_acquire)) {
    is_taken_ = true;
    return connection;
  }
  if (has_failed_.load(std::memory_order_acquire)) return failure_;
  if (generation_ != fork_registry::generation()) {
    return system_error("this listener belongs to the parent of this forked process");
  }
  const std::uint64_t now = Reactor::now_ns();
  if (deadline_ns_ == 0) deadline_ns_ = now + timeout_ns_;
  if (now > deadline_ns_) {
    return timeout_error("no sender connected within RIFFLE_CONNECT_TIMEOUT (" +
                         std::to_string(timeout_ns_ / kSecond) +
                         " s): the node that was to send does not reach this one, or its NCCL "
                         "uses another network than Riffle (`riffle doctor` there says which)");
  }
  return nullptr;
}

void Listener::close(Listener* listener) {
  if (listener->generation_ != fork_registry::generation()) return;  // the parent's
  listener->reactor_->run_and_wait([listener] { listener->pending_.reset(); });
  RecvConnection* const unclaimed = listener->ready_.load(std::memory_order_acquire);
  if (unclaimed != nullptr && !listener->is_taken_) Connection::close(unclaimed);
  delete listener;
}

}  // namespace riffle::net
