#include "plugin/transport/tcp/acceptor.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/transport/tcp/link_keys.h"

namespace riffle {
namespace {

constexpr std::uint64_t kRetryNs = 100'000'000;  // after the system ran out of descriptors

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
  Visitor(Acceptor& acceptor, Fd socket)
      : acceptor_(acceptor),
        socket_(std::move(socket)),
        challenge_(make_challenge(acceptor.credentials_.offer())),
        timers_(&acceptor.reactor_, [this](const Status& why) { refuse(why.message()); }) {
    name_ = to_text(remote_address_of(socket_.get()));
    timers_.call_at(Reactor::now_ns() + kHandshakeTimeoutNs, [this] {
      refuse("it did not introduce itself within 5 s (" + std::to_string(have_) + " of " +
             std::to_string(kHelloBytes) + " bytes came)");
    });
    acceptor_.reactor_.add(socket_.get(), EPOLLIN, this);
  }
  ~Visitor() override {
    if (socket_.is_open()) acceptor_.reactor_.remove(socket_.get());
  }

  // A fresh socket takes 32 bytes at once; if not, the reading side finds out.
  void send_challenge() {
    (void)!::send(socket_.get(), challenge_.data(), challenge_.size(), MSG_NOSIGNAL);
  }

  void on_ready(std::uint32_t) override {
    const ssize_t n = ::recv(socket_.get(), hello_.data() + have_, hello_.size() - have_, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return refuse("it hung up before it introduced itself");
    have_ += static_cast<std::size_t>(n);
    if (have_ >= kVersionPrefixBytes) {
      if (const Status s = check_hello_prefix(hello_.data()); !s) return refuse(s.message());
    }
    if (have_ == hello_.size()) judge();
  }
  void on_failure(const Status& why) override { refuse(why.message()); }

 private:
  void judge() {
    const HandleContent& content = acceptor_.content_;
    const Credentials& own = acceptor_.credentials_;
    const Result<Hello> hello = open_hello(hello_, own, challenge_);
    if (!hello) return refuse(hello.status().message());
    if (hello->communicator != content.communicator) {
      return refuse("it belongs to another communicator");
    }
    if (const Status s = acceptor_.owner_->admit(*hello); !s) return refuse(s.message());
    Result<Answer> says = answer(own, challenge_, hello_, *hello);
    if (!says) return refuse(says.status().message());
    if (::send(socket_.get(), says->welcome.data(), says->welcome.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(says->welcome.size())) {
      return refuse("it hung up before it was welcomed");
    }
    acceptor_.reactor_.remove(socket_.get());
    Acceptor::Owner* const owner = acceptor_.owner_;
    Connection connection(std::move(socket_), std::move(says->keys));
    acceptor_.finish(this);  // destroys this
    owner->joined(std::move(connection), *hello);
  }

  void refuse(const std::string& why) {
    log_warn("dropped a connection from {}: {}", name_, why);
    acceptor_.finish(this);
  }

  Acceptor& acceptor_;
  Fd socket_;
  std::string name_;
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
      timers_(&reactor, [owner](const Status& why) { owner->failed(why); }) {
  for (Fd& socket : sockets) doors_.push_back(std::make_unique<Door>(*this, std::move(socket)));
  open_doors();
}

Acceptor::~Acceptor() = default;

void Acceptor::open_doors() {
  for (const auto& door : doors_) door->open();
}

void Acceptor::close_doors() {
  for (const auto& door : doors_) door->close();
}

void Acceptor::accept_waiting(int listener) {
  while (visitors_.size() < kMaxPending) {
    int error = 0;
    Fd socket = accept_from(listener, &error);
    if (error == EAGAIN) return;
    if (error == ECONNABORTED || error == EINTR) continue;
    if (error != 0) {
      log_warn("cannot accept a connection: {}; trying again", errno_text(error));
      timers_.call_at(Reactor::now_ns() + kRetryNs, [this] { open_doors(); });
      close_doors();
      return;
    }
    visitors_.push_back(std::make_unique<Visitor>(*this, std::move(socket)));
    visitors_.back()->send_challenge();
  }
  close_doors();  // full: the others wait in the kernel until finish()
}

void Acceptor::finish(Visitor* visitor) {
  std::erase_if(visitors_, [visitor](const auto& v) { return v.get() == visitor; });
  open_doors();
}

}  // namespace riffle
