#include "plugin/net/net_connecting.h"

#include <map>
#include <mutex>

#include "plugin/config/caught.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/base/wire.h"
#include "plugin/transport/factory.h"
#include "plugin/transport/reactor/fork_registry.h"

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

Result<SendConnection*> Connecting::poll(const TransportOptions& transport,
                                         const NetOptions& options, int device, Handle* handle) {
  const auto id = get<std::uint64_t>(&handle->bytes[kScratchAt]);
  Result<std::shared_ptr<Connecting>> attempt =
      id != 0 ? find(id) : begin(transport, options, device, handle);
  if (!attempt) return attempt.status();
  if (!(*attempt)->is_over_.load(std::memory_order_acquire)) return nullptr;
  forget(handle);
  if ((*attempt)->connection_ == nullptr) return (*attempt)->failure_;
  return (*attempt)->connection_.release();
}

Result<std::shared_ptr<Connecting>> Connecting::find(std::uint64_t id) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto it = t.attempts.find(id);
  if (it == t.attempts.end()) return internal_error("connect with a handle whose attempt is over");
  it->second->last_asked_ns_ = Reactor::now_ns();
  return it->second;
}

Result<std::shared_ptr<Connecting>> Connecting::begin(const TransportOptions& transport,
                                                      const NetOptions& options, int device,
                                                      Handle* handle) {
  const Result<HandleContent> content = decode(*handle);
  if (!content) return content.status();
  const auto made = make_transport(transport);
  if (!made) return made.status();
  std::shared_ptr<Connecting> attempt(new Connecting(transport, options));
  Status status;
  attempt->reactor_->run_and_wait(
      [&] { status = attempt->start(**made, *content, device, handle); });
  if (!status) return status;
  return attempt;
}

Status Connecting::start(const Transport& transport, const HandleContent& to, int device,
                         Handle* handle) {
  auto pending =
      transport.connect(*reactor_, to, device, "receiver",
                        [this](const Result<std::shared_ptr<Link>>& link) { linked(link); });
  if (!pending) return pending.status();
  pending_ = std::move(*pending);
  const std::uint64_t id = random_u64() | 1;
  last_asked_ns_ = Reactor::now_ns();
  watch(id, last_asked_ns_ + patience_ns_);  // first: what is in the table without it stays there
  {
    const std::lock_guard lock(table().mutex);
    table().attempts.emplace(id, shared_from_this());
  }
  put(&handle->bytes[kScratchAt], id);
  return Status::ok();
}

// Reactor thread. NCCL asks no more when it aborts while it connects: sockets and memory must not
// wait for a next connect that may never come.
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

Connecting::Connecting(const TransportOptions& transport, const NetOptions& options)
    : patience_ns_(transport.connect_timeout_ns),
      piece_bytes_(options.piece_bytes),
      reactor_(Reactor::acquire(transport)),
      generation_(fork_registry::generation()) {}

Connecting::~Connecting() {
  if (generation_ != fork_registry::generation()) {
    (void)connection_.release();  // the parent's
    return;
  }
  reactor_->run_and_wait([this] {
    reactor_->cancel(timer_);
    pending_.reset();
  });
  if (connection_ != nullptr) Connection::close(connection_.release());
}

void Connecting::linked(const Result<std::shared_ptr<Link>>& link) {
  catching([&] { failure_ = link.status(); }, [this](const Status& why) { failure_ = why; });
  if (link) {
    catching(
        [&] {
          connection_ =
              std::make_unique<SendConnection>(*reactor_, (*link)->streams(), piece_bytes_);
          connection_->attach(*link);
        },
        [this](const Status& why) {
          connection_.reset();
          failure_ = why;
        });
  }
  pending_.reset();
  is_over_.store(true, std::memory_order_release);
}

}  // namespace riffle::net
