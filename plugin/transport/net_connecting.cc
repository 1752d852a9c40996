#include "plugin/transport/net_connecting.h"

#include <map>
#include <mutex>

#include "plugin/config/config.h"
#include "plugin/transport/fork_registry.h"
#include "plugin/transport/net_options.h"
#include "plugin/transport/tcp_listener.h"
#include "plugin/transport/wire.h"

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
  const auto id = get<std::uint64_t>(&handle->bytes[kScratchAt]);
  std::vector<std::shared_ptr<Connecting>> abandoned;  // destroyed after the lock is released
  {
    const std::lock_guard lock(t.mutex);
    if (const auto it = t.attempts.find(id); id != 0 && it != t.attempts.end()) {
      it->second->last_asked_ns_ = now;
      return it->second;
    }
    const auto patience_ns =
        static_cast<std::uint64_t>(config().connect_timeout_s) * 1'000'000'000u;
    std::erase_if(t.attempts, [&](const auto& entry) {
      if (now - entry.second->last_asked_ns_ < patience_ns) return false;
      abandoned.push_back(entry.second);
      return true;
    });
  }
  if (id != 0) return internal_error("connect with a handle whose attempt is over");
  Result<HandleContent> content = decode(*handle);
  if (!content) return content.status();
  Result<const Device*> own = find_device(device);
  if (!own) return own.status();
  std::shared_ptr<Connecting> attempt(new Connecting(*content, scope_of(**own)));
  attempt->last_asked_ns_ = now;
  attempt->reactor_->run_and_wait([&] { attempt->begin(); });
  const std::uint64_t fresh = random_u64() | 1;
  put(&handle->bytes[kScratchAt], fresh);
  const std::lock_guard lock(t.mutex);
  t.attempts.emplace(fresh, attempt);
  return attempt;
}

void Connecting::forget(Handle* handle) {
  const std::lock_guard lock(table().mutex);
  table().attempts.erase(get<std::uint64_t>(&handle->bytes[kScratchAt]));
}

Connecting::Connecting(const HandleContent& to, std::uint32_t scope_id)
    : to_(to),
      scope_id_(scope_id),
      deadline_ns_(connect_deadline_ns()),
      session_(random_u64()),
      streams_count_(streams_to_each_of(1)),
      reactor_(Reactor::acquire()),
      generation_(fork_registry::generation()) {}

Connecting::~Connecting() {
  if (generation_ != fork_registry::generation()) {
    (void)connection_.release();  // the parent's
    return;
  }
  reactor_->run_and_wait([this] { connectors_.clear(); });
  if (connection_ != nullptr) Connection::close(connection_.release());
}

void Connecting::begin() {
  const auto streams = static_cast<std::uint16_t>(streams_count_);
  for (std::uint16_t i = 0; i < streams; ++i) {
    connectors_.push_back(std::make_unique<Connector>(
        *reactor_,
        ConnectorOptions{.to = to_,
                         .hello = {.communicator = to_.communicator,
                                   .session = session_,
                                   .stream = i,
                                   .streams = streams},
                         .scope_id = scope_id_,
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
