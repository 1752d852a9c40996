#include "plugin/transport/handshake/acceptor.h"

#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/transport/handshake/link_keys.h"

namespace riffle {
namespace {

constexpr std::uint64_t kRetryNs = 100'000'000;  // after the system ran out of descriptors
constexpr std::uint64_t kSayNs = 60'000'000'000;

// Descriptors are the process's, so one line a minute is for all its listeners.
void say_cannot_accept(int error) {
  static std::atomic<std::uint64_t> next_ns{0};
  const std::uint64_t now = Reactor::now_ns();
  std::uint64_t next = next_ns.load(std::memory_order_relaxed);
  if (now < next || !next_ns.compare_exchange_strong(next, now + kSayNs)) return;
  log_warn(
      "cannot accept a connection: {}; trying again, ten times a second (for too many open files: "
      "raise the hard limit, ulimit -Hn)",
      errno_text(error));
}

}  // namespace

class Acceptor::Door final : public Reactor::FdHandler {
 public:
  Door(Acceptor& acceptor, Fd socket) : acceptor_(acceptor), socket_(std::move(socket)) {}
  ~Door() override { close(); }
  void open() {
    if (is_open_) return;
    acceptor_.reactor_.add(socket_.get(), EPOLLIN, this);
    is_open_ = true;
  }
  void close() {
    if (std::exchange(is_open_, false)) acceptor_.reactor_.remove(socket_.get());
  }
  // (What it did not get round to when it threw is still there in the next turn.)
  void on_ready(std::uint32_t) override { acceptor_.accept_waiting(socket_.get()); }

 private:
  Acceptor& acceptor_;
  Fd socket_;
  bool is_open_ = false;
};

class Acceptor::Visitor final : public Reactor::FdHandler {
 public:
  Visitor(Acceptor& acceptor, Fd socket, const SocketAddress& from)
      : acceptor_(acceptor),
        socket_(std::move(socket)),
        from_(from),
        challenge_(make_challenge(acceptor.credentials_.offer())),
        timers_(&acceptor.reactor_,
                [this](const Status& why) { refuse(Stranger::kRefused, why.message()); }) {
    timers_.call_at(Reactor::now_ns() + kHandshakeTimeoutNs, [this] {
      refuse(Stranger::kSilent, "it did not introduce itself within 5 s (" + std::to_string(have_) +
                                    " of " + std::to_string(kHelloBytes) + " bytes came)");
    });
    acceptor_.reactor_.add(socket_.get(), EPOLLIN, this);
  }
  ~Visitor() override {
    if (socket_.is_open()) acceptor_.reactor_.remove(socket_.get());
  }

  bool is_from(const SocketAddress& host) const { return is_same_host(from_, host); }

  // A fresh socket takes 32 bytes at once; if not, the reading side finds out.
  void send_challenge() {
    (void)!::send(socket_.get(), challenge_.data(), challenge_.size(), MSG_NOSIGNAL);
  }

  void on_ready(std::uint32_t) override {
    const ssize_t n = ::recv(socket_.get(), hello_.data() + have_, hello_.size() - have_, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return refuse(Stranger::kLeft, "it hung up before it introduced itself");
    have_ += static_cast<std::size_t>(n);
    if (have_ >= kVersionPrefixBytes) {
      if (const Status s = check_hello_prefix(hello_.data()); !s) {
        return refuse(Stranger::kForeign, s.message());
      }
    }
    if (have_ == hello_.size()) judge();
  }
  void on_failure(const Status& why) override { refuse(Stranger::kRefused, why.message()); }

 private:
  void judge() {
    const HandleContent& content = acceptor_.content_;
    const Credentials& own = acceptor_.credentials_;
    const Result<Hello> hello = open_hello(hello_, own, challenge_);
    if (!hello) return refuse(Stranger::kRefused, hello.status().message());
    if (hello->communicator != content.communicator) {
      return refuse(Stranger::kRefused, "it belongs to another communicator");
    }
    if (const Status s = acceptor_.owner_->admit(*hello); !s) {
      return refuse(Stranger::kRefused, s.message());
    }
    Result<Answer> says = answer(own, challenge_, hello_, *hello);
    if (!says) return refuse(Stranger::kRefused, says.status().message());
    if (::send(socket_.get(), says->welcome.data(), says->welcome.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(says->welcome.size())) {
      return refuse(Stranger::kLeft, "it hung up before it was welcomed");
    }
    acceptor_.reactor_.remove(socket_.get());
    Acceptor::Owner* const owner = acceptor_.owner_;
    Connection connection(std::move(socket_), std::move(says->keys));
    connection.mark = mark_of(says->welcome);
    acceptor_.finish(this);  // destroys this
    owner->joined(std::move(connection), *hello);
  }

  void refuse(Stranger kind, const std::string& why) {
    acceptor_.log_.dropped(kind, from_, why);
    acceptor_.finish(this);
  }

  Acceptor& acceptor_;
  Fd socket_;
  const SocketAddress from_;
  const ChallengeBytes challenge_;
  HelloBytes hello_{};
  std::size_t have_ = 0;
  OwnedTimers timers_;
};

Acceptor::Acceptor(Reactor& reactor, std::vector<Fd> sockets, const HandleContent& content,
                   Owner* owner, const EncryptionOptions& encryption)
    : reactor_(reactor),
      content_(content),
      credentials_(content.secret, encryption),
      owner_(owner),
      timers_(&reactor, [owner](const Status& why) { owner->failed(why); }),
      log_(&timers_) {
  for (Fd& socket : sockets) doors_.push_back(std::make_unique<Door>(*this, std::move(socket)));
  set_doors();
}

Acceptor::~Acceptor() = default;

void Acceptor::expect_peers(bool are_expected) {
  are_expected_ = are_expected;
  set_doors();
}

void Acceptor::set_doors() {
  const bool are_open = are_expected_ && !is_out_of_descriptors_ && visitors_.size() < kMaxPending;
  for (const auto& door : doors_) are_open ? door->open() : door->close();
}

void Acceptor::accept_waiting(int listener) {
  for (int n = 0; n < kMostPerTurn && visitors_.size() < kMaxPending; ++n) {
    int error = 0;
    SocketAddress from;
    Fd socket = accept_from(listener, &error, &from);
    if (error == EAGAIN) return;
    if (error == ECONNABORTED || error == EINTR) continue;
    if (error != 0) {
      say_cannot_accept(error);
      timers_.call_at(Reactor::now_ns() + kRetryNs, [this] {
        is_out_of_descriptors_ = false;
        set_doors();
      });
      is_out_of_descriptors_ = true;
      break;
    }
    take_in(std::move(socket), from);
  }
  set_doors();  // full: the others wait in the kernel until finish()
}

void Acceptor::take_in(Fd socket, const SocketAddress& from) {
  const auto of_it = std::count_if(visitors_.begin(), visitors_.end(),
                                   [&from](const auto& v) { return v->is_from(from); });
  if (static_cast<std::size_t>(of_it) >= kMaxPendingOfOne) {
    return log_.dropped(
        Stranger::kOneTooMany, from,
        std::to_string(of_it) + " others from there have not introduced themselves");
  }
  visitors_.push_back(std::make_unique<Visitor>(*this, std::move(socket), from));
  visitors_.back()->send_challenge();
}

void Acceptor::finish(Visitor* visitor) {
  std::erase_if(visitors_, [visitor](const auto& v) { return v.get() == visitor; });
  set_doors();
}

}  // namespace riffle
