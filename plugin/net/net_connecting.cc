#include "plugin/net/net_connecting.h"

#include <map>
#include <mutex>

#include "plugin/config/config.h"
#include "plugin/net/net_options.h"
#include "plugin/transport/base/wire.h"
#include "plugin/transport/reactor/fork_registry.h"
#include "plugin/transport/tcp/tcp_listener.h"
#include "topology/base/time.h"

namespace riffle::net {
namespace {

constexpr std::size_t kScratchAt = kHandleBytes - 8;

// Never destroyed: connect() may run while the process exits.
struct Table {
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<Connecting>> attempts;
};
Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

std::uint64_t patience_ns() {
  return static_cast<std::uint64_t>(config().connect_timeout_s) * kSecond;
}

}  // namespace

Result<SendConnection*> Connecting::poll(int device, Handle* handle) {
  Result<std::shared_ptr<Connecting>> found = find_or_begin(device, handle);
  if (!found) return found.status();
  Connecting& attempt = **found;
  if (!attempt.is_over_.load(std::memory_order_acquire)) return nullptr;
  forget(handle);
  if (attempt.connection_ == nullptr) return attempt.failure_;
  return attempt.connection_.release();
}

Result<std::shared_ptr<Connecting>> Connecting::find_or_begin(int device, Handle* handle) {
  Table& t = table();
  const std::uint64_t now = Reactor::now_ns();
  const auto known = get<std::uint64_t>(&handle->bytes[kScratchAt]);
  if (known != 0) {
    const std::lock_guard lock(t.mutex);
    const auto it = t.attempts.find(known);
    if (it == t.attempts.end()) {
      return internal_error("connect with a handle whose attempt is over");
    }
    it->second->last_asked_ns_ = now;
    return it->second;
  }
  Result<HandleContent> content = decode(*handle);
  if (!content) return content.status();
  Result<const Device*> own = find_device(device);
  if (!own) return own.status();
  std::shared_ptr<Connecting> attempt(new Connecting(*content, (*own)->addresses));
  attempt->last_asked_ns_ = now;
  const std::uint64_t id = random_u64() | 1;
  {
    const std::lock_guard lock(t.mutex);
    t.attempts.emplace(id, attempt);
  }
  attempt->reactor_->run_and_wait([&] { attempt->begin(id); });
  put(&handle->bytes[kScratchAt], id);
  return attempt;
}

// Reactor thread. Nobody asks any more when NCCL aborts while it connects: sockets and memory must
// not wait for a next connect that may never come.
void Connecting::drop_if_abandoned(std::uint64_t id) {
  Table& t = table();
  std::shared_ptr<Connecting> abandoned;  // destroyed after the lock is released
  const std::lock_guard lock(t.mutex);
  const auto it = t.attempts.find(id);
  if (it == t.attempts.end()) return;
  const std::uint64_t end_ns = it->second->last_asked_ns_ + it->second->patience_ns_;
  if (Reactor::now_ns() < end_ns) return it->second->watch(id, end_ns);
  abandoned = std::move(it->second);
  t.attempts.erase(it);
}

void Connecting::watch(std::uint64_t id, std::uint64_t when_ns) {
  timer_ = reactor_->call_at(when_ns, [id] { drop_if_abandoned(id); });
}

void Connecting::forget(Handle* handle) {
  const std::lock_guard lock(table().mutex);
  table().attempts.erase(get<std::uint64_t>(&handle->bytes[kScratchAt]));
}

Connecting::Connecting(const HandleContent& to, const std::vector<NicAddress>& own)
    : to_(to),
      own_(own),
      deadline_ns_(connect_deadline_ns()),
      patience_ns_(patience_ns()),
      session_(random_u64()),
      streams_count_(streams_for(to.endpoints, own, streams_to_each_of(1))),
      reactor_(Reactor::acquire()),
      generation_(fork_registry::generation()) {}

Connecting::~Connecting() {
  if (generation_ != fork_registry::generation()) {
    (void)connection_.release();  // the parent's
    return;
  }
  reactor_->run_and_wait([this] {
    reactor_->cancel(timer_);
    connectors_.clear();
  });
  if (connection_ != nullptr) Connection::close(connection_.release());
}

void Connecting::begin(std::uint64_t id) {
  watch(id, Reactor::now_ns() + patience_ns());
  const auto streams = static_cast<std::uint16_t>(streams_count_);
  for (std::uint16_t i = 0; i < streams; ++i) {
    connectors_.push_back(std::make_unique<Connector>(
        *reactor_,
        ConnectorOptions{.to = to_,
                         .hello = {.communicator = to_.communicator,
                                   .session = session_,
                                   .stream = i,
                                   .streams = streams},
                         .own = own_,
                         .deadline_ns = deadline_ns_},
        [this, i](Result<Fd> socket) { joined(i, std::move(socket)); }));
  }
}

void Connecting::joined(std::uint16_t stream, Result<Fd> socket) {
  if (!socket) {
    failure_ = socket.status();
    connectors_.clear();
    is_over_.store(true, std::memory_order_release);
    return;
  }
  const auto streams = static_cast<std::uint16_t>(streams_count_);
  streams_.add(std::move(*socket), {.session = session_, .stream = stream, .streams = streams});
  if (!streams_.is_complete()) return;
  const std::string peer = "receiver " + to_text(to_.endpoints.front());
  connection_ = std::make_unique<SendConnection>(*reactor_, streams_count_);
  connection_->attach(streams_.take(), link_options(peer, to_.communicator));
  connectors_.clear();
  is_over_.store(true, std::memory_order_release);
}

}  // namespace riffle::net
