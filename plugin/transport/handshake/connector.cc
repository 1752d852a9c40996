#include "plugin/transport/handshake/connector.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace riffle {
namespace {

constexpr std::uint64_t kFirstPauseNs = 10'000'000;
constexpr std::uint64_t kLongestPauseNs = 1'000'000'000;
// A TCP connection that takes longer is tried over the next endpoint. The handshake has no such
// limit: the listener answers when its own side of NCCL's set-up has come that far.
constexpr std::uint64_t kTcpConnectNs = 5'000'000'000;
// A listener that hangs up after the HELLO has judged it; asking more often would not help.
constexpr int kMaxRefusals = 3;

}  // namespace

Connector::Connector(Reactor& reactor, ConnectorOptions options,
                     std::function<void(Result<Connection>)> done)
    : reactor_(reactor),
      options_(std::move(options)),
      routes_(routes(options_.to.endpoints, options_.own, options_.hello.stream)),
      done_(std::move(done)),
      credentials_(options_.to.secret, options_.encryption),
      timers_(&reactor, [this](const Status& why) { on_failure(why); }) {
  set_timer(Reactor::now_ns());
}

Connector::~Connector() { drop_socket(); }

std::string Connector::target() const {
  return to_text(route(attempts_ > 0 ? attempts_ - 1 : 0).to);
}

void Connector::set_timer(std::uint64_t when_ns) {
  timers_.cancel(timer_);
  timer_ = timers_.call_at(std::min(when_ns, options_.deadline_ns), [this] { on_timer(); });
}

void Connector::on_timer() {
  if (attempts_ > 0 && Reactor::now_ns() >= options_.deadline_ns) {
    const char* const where =
        step_ == Step::kChallenge ? ": it accepted the connection but did not speak yet" : "";
    return finish(timeout_error("no connection to " + target() + " within RIFFLE_CONNECT_TIMEOUT" +
                                where + " (last error: " + last_error_ + ")"));
  }
  if (step_ == Step::kConnect) return try_again(target() + " does not answer");
  if (step_ == Step::kPause) attempt();
}

void Connector::attempt() {
  const Route& way = route(attempts_++);
  Result<Fd> socket = start_connect(to_socket_address(way.to, way.scope_id),
                                    way.from ? &*way.from : nullptr, options_.congestion);
  if (!socket) return try_again(socket.status().message());
  socket_ = std::move(*socket);
  step_ = Step::kConnect;
  reactor_.add(socket_.get(), EPOLLOUT, this);
  set_timer(Reactor::now_ns() + kTcpConnectNs);
}

void Connector::drop_socket() {
  if (socket_.is_open()) reactor_.remove(socket_.get());
  socket_.reset();
}

void Connector::try_again(const std::string& why) {
  last_error_ = why;
  drop_socket();
  step_ = Step::kPause;
  pause_ns_ = std::clamp(pause_ns_ * 2, kFirstPauseNs, kLongestPauseNs);
  set_timer(Reactor::now_ns() + pause_ns_);
}

void Connector::on_failure(const Status& why) {
  if (done_) finish(why);
}

void Connector::on_ready(std::uint32_t) {
  switch (step_) {
    case Step::kPause:
      return;
    case Step::kConnect:
      if (const Status s = connect_outcome(socket_.get()); !s) {
        return try_again("cannot connect to " + target() + ": " + s.message());
      }
      step_ = Step::kChallenge;
      have_ = 0;
      reactor_.modify(socket_.get(), EPOLLIN, this);
      return set_timer(options_.deadline_ns);
    case Step::kChallenge:
      return read_challenge();
    case Step::kWelcome:
      return read_welcome();
  }
}

// True when all `size` bytes are in. On the end of the stream it arranges for what follows.
bool Connector::receive(std::uint8_t* data, std::size_t size) {
  const ssize_t n = ::recv(socket_.get(), data + have_, size - have_, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n > 0) {
    have_ += static_cast<std::size_t>(n);
    return have_ == size;
  }
  if (step_ == Step::kWelcome && ++refusals_ >= kMaxRefusals) {
    finish(remote_error(target() +
                        " refused this node's introduction: its log says why (a handle of "
                        "another job, another key in RIFFLE_KEY_FILE, or its side of the "
                        "connection failed)"));
  } else {
    try_again(target() + " hung up during the handshake");
  }
  return false;
}

void Connector::read_challenge() {
  if (!receive(challenge_.data(), challenge_.size())) return;
  Hello hello = options_.hello;
  pair_ = add_key(credentials_, &hello);
  hello_ = make_hello(hello, credentials_, challenge_);
  Status s = check_challenge(challenge_);
  // This version reaches the listener in any case, so that its log names both versions too; and so
  // does what this side was told about encryption.
  const std::size_t size = s ? hello_.size() : kVersionPrefixBytes;
  const ssize_t sent = ::send(socket_.get(), hello_.data(), size, MSG_NOSIGNAL);
  if (s) s = check_offer(challenge_, credentials_.offer());
  if (!s) return finish(remote_error("cannot connect to " + target() + ": " + s.message()));
  if (sent != static_cast<ssize_t>(size)) return try_again(target() + " hung up");
  step_ = Step::kWelcome;
  have_ = 0;
}

void Connector::read_welcome() {
  if (!receive(welcome_.data(), welcome_.size())) return;
  auto keys = open_welcome(credentials_, challenge_, hello_, pair_.get(), welcome_);
  pair_.reset();
  if (!keys) {
    return finish(remote_error("cannot connect to " + target() + ": " + keys.status().message()));
  }
  reactor_.remove(socket_.get());
  Connection connection(std::move(socket_), std::move(*keys));
  connection.mark = mark_of(welcome_);
  finish(std::move(connection));
}

void Connector::finish(Result<Connection> result) {
  timers_.clear();
  drop_socket();
  const auto done = std::move(done_);
  done(std::move(result));  // may destroy this
}

}  // namespace riffle
