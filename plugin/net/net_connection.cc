#include "plugin/net/net_connection.h"

#include <algorithm>

#include "plugin/config/caught.h"
#include "plugin/config/fault_log.h"
#include "plugin/transport/reactor/fork_registry.h"

namespace riffle::net {
namespace {

constexpr std::size_t kMaxFaultBytes = 1024;
using State = Request::State;

}  // namespace

Connection::Connection(Reactor& reactor, Way way)
    : reactor_(reactor.shared_from_this()), generation_(fork_registry::generation()), way_(way) {
  for (int i = 0; i < kMaxRequests; ++i) {
    requests_[static_cast<std::size_t>(i)].connection = this;
    requests_[static_cast<std::size_t>(i)].index = i;
  }
}

void Connection::attach(std::shared_ptr<Link> link) {
  link_ = std::move(link);
  peer_ = link_->peer();
  link_->set_sink(this);
}

bool Connection::is_of_this_process() const { return generation_ == fork_registry::generation(); }

Status Connection::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

// ---- the caller's thread ----

// A peer that closed while nothing was running is no fault until a call wants more of it.
Status Connection::failure_of_a_call() {
  Status why = failure();
  if (left_quietly_.exchange(false, std::memory_order_relaxed)) log_fault(why.message());
  return why;
}

Result<Request*> Connection::claim(int count) {
  if (!is_of_this_process()) {
    return system_error("this connection belongs to the parent of this forked process");
  }
  if (has_failed()) return failure_of_a_call();
  const auto free = std::find_if(requests_.begin(), requests_.end(), [](const Request& r) {
    return r.state.load(std::memory_order_relaxed) == State::kFree;
  });
  if (free == requests_.end()) return nullptr;
  free->order = next_order_++;
  free->count = free->pending = count;
  free->messages = {};
  free->state.store(State::kRunning, std::memory_order_relaxed);  // submit() publishes it
  return &*free;
}

// A receive only says how much it has room for: the last one tells what to expect.
bool Connection::is_large(const Request& request) const {
  std::size_t bytes = 0;
  for (int i = 0; i < request.count; ++i) {
    bytes += request.messages[static_cast<std::size_t>(i)].size;
  }
  return (way_ == Way::kSends ? bytes : std::min(bytes, last_bytes_)) > reactor_->polling().bytes;
}

void Connection::stop_counting(Request* request) {
  if (std::exchange(request->is_large, false)) reactor_->keep_thread(-1);
}

void Connection::submit(Request* request) {
  request->is_large = is_large(*request);
  if (request->is_large) reactor_->keep_thread(1);
  {
    const std::lock_guard lock(mutex_);
    submitted_[static_cast<std::size_t>(submitted_count_++)] = request;
  }
  reactor_->wake(this);
  if (!request->is_large) reactor_->poll();
}

Result<bool> Connection::test(Request* request, int* sizes) {
  State state = request->state.load(std::memory_order_acquire);
  if (state == State::kRunning && !request->is_large) {
    reactor_->poll();
    state = request->state.load(std::memory_order_acquire);
  }
  switch (state) {
    case State::kRunning:
      if (!is_of_this_process()) {
        return system_error("this connection belongs to the parent of this forked process");
      }
      return false;
    case State::kFailed:
      stop_counting(request);
      return failure_of_a_call();
    case State::kFree:
      return internal_error("test of a request that is not in use");
    case State::kDone:
      break;
  }
  stop_counting(request);
  last_bytes_ = 0;
  for (int i = 0; i < request->count; ++i) {
    const std::size_t bytes = request->messages[static_cast<std::size_t>(i)].done;
    last_bytes_ += bytes;
    if (sizes != nullptr) sizes[i] = static_cast<int>(bytes);
  }
  request->state.store(State::kFree, std::memory_order_relaxed);
  return true;
}

void Connection::close(Connection* connection) {
  // A forked child holds a copy whose reactor and locks it must not touch: it stays where it is.
  if (!connection->is_of_this_process()) return;
  connection->reactor_->run_and_wait([connection] {
    const bool is_idle =
        std::none_of(connection->requests_.begin(), connection->requests_.end(),
                     [](const Request& r) { return r.state.load() == State::kRunning; });
    // The link ends on its own thread, here or when it has drained.
    if (const std::shared_ptr<Link> link = std::exchange(connection->link_, nullptr)) {
      if (is_idle) {
        link->close();
      } else {
        link->abort();
      }
    }
    connection->reactor_->forget(connection);
  });
  for (Request& r : connection->requests_) connection->stop_counting(&r);
  delete connection;
}

void Connection::fence(const void* base, std::size_t size) {
  if (!is_of_this_process()) return;
  const bool is_idle = std::none_of(requests_.begin(), requests_.end(), [](const Request& r) {
    return r.state.load(std::memory_order_acquire) == State::kRunning;
  });
  if (is_idle) return;
  reactor_->run_and_wait([this, base, size] {
    start_submitted();  // from here on the reactor may look into every running request
    const bool hit = std::any_of(requests_.begin(), requests_.end(), [&](const Request& r) {
      return touches(r, static_cast<const std::byte*>(base), size);
    });
    if (hit) fail(remote_error("memory was deregistered while " + peer_ + " was using it"));
  });
}

// ---- the reactor thread ----

void Connection::on_wake() {
  start_submitted();
  if (has_failed()) return;
  run();
  if (!has_failed()) link_->flush();
}

void Connection::start_submitted() {
  std::array<Request*, kMaxRequests> fresh;
  int count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = std::exchange(submitted_count_, 0);
    std::copy_n(submitted_.begin(), count, fresh.begin());
  }
  for (int i = 0; i < count; ++i) {
    Request& request = *fresh[static_cast<std::size_t>(i)];
    request.is_started = true;
    if (has_failed()) {
      request.is_started = false;
      request.state.store(State::kFailed, std::memory_order_release);
    } else {
      start(request);
    }
  }
}

void Connection::complete(Request& request) {
  request.is_started = false;
  request.state.store(State::kDone, std::memory_order_release);
}

void Connection::fail(const Status& why) {
  if (has_failed()) return;
  end(why);
  catching([&] { log_fault(why.message()); }, [](const Status&) {});
}

void Connection::end(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    catching([&] { failure_ = why; }, [this](const Status& thrown) { failure_ = thrown; });
  }
  failed_.store(true, std::memory_order_release);
  if (link_ != nullptr) std::exchange(link_, nullptr)->abort();
  stop();
  for (Request& r : requests_) {
    if (!r.is_started) continue;
    r.is_started = false;
    r.state.store(State::kFailed, std::memory_order_release);
  }
  start_submitted();  // what came since fails as well
}

void Connection::fail_both(const Status& why) {
  fault_text_ = why.message().substr(0, kMaxFaultBytes);
  link_->send({.type = FrameType::kFault, .length = static_cast<std::uint32_t>(fault_text_.size())},
              std::as_bytes(std::span(fault_text_)), 0, 0);
  std::exchange(link_, nullptr)->close();  // it copies what it still has to send
  fail(why);
}

bool Connection::has_running() const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [](const Request& r) { return r.is_started; });
}

// All that the peer ever sent is here, so what is still running can never end. Without anything
// running it is the usual end of a communicator and nothing to talk about.
void Connection::departed(int /*peer*/) {
  const Status why = remote_error(peer_ + " closed the connection");
  if (has_running()) {
    fail(remote_error(why.message() + " while transfers were running: its log may say why"));
  } else {
    left_quietly_.store(true, std::memory_order_relaxed);
    end(why);
  }
}

Result<std::byte*> Connection::get_receive_buffer(int /*peer*/, const FrameHeader& header) {
  if (header.type != FrameType::kFault) {
    return remote_error("frame type " + std::to_string(static_cast<int>(header.type)) +
                        " is out of place on a NET connection");
  }
  if (header.length > kMaxFaultBytes) return remote_error("oversized fault message");
  fault_text_.resize(kMaxFaultBytes);
  return reinterpret_cast<std::byte*>(fault_text_.data());
}

void Connection::arrived(int /*peer*/, const FrameHeader& header, std::byte*) {
  const Status why = remote_error(peer_ + " failed: " + fault_text_.substr(0, header.length));
  std::exchange(link_, nullptr)->close();
  fail(why);
}

bool Connection::touches(const Request& request, const std::byte* base, std::size_t size) const {
  if (!request.is_started) return false;
  return std::any_of(request.messages.begin(), request.messages.begin() + request.count,
                     [&](const Message& m) {
                       return m.size > 0 && std::less<>()(m.data, base + size) &&
                              std::less<>()(base, m.data + m.size);
                     });
}

}  // namespace riffle::net
