#include "plugin/transport/handshake/doors.h"

#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/transport/base/caught.h"

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

class Doors::Door final : public Reactor::FdHandler {
 public:
  Door(Doors& doors, Fd socket) : doors_(doors), socket_(std::move(socket)) {}
  ~Door() override { close(); }
  void open() {
    if (is_open_) return;
    doors_.strangers_.add(socket_.get(), EPOLLIN, this);
    is_open_ = true;
  }
  void close() {
    if (std::exchange(is_open_, false)) doors_.strangers_.remove(socket_.get());
  }
  // (What it did not get round to when it threw is still there in the next turn.)
  void on_ready(std::uint32_t) override { doors_.accept_waiting(socket_.get()); }

 private:
  Doors& doors_;
  Fd socket_;
  bool is_open_ = false;
};

class Doors::Visitor final : public Reactor::FdHandler {
 public:
  Visitor(Doors& doors, Fd socket, const SocketAddress& from)
      : doors_(doors),
        socket_(std::move(socket)),
        from_(from),
        challenge_(make_challenge(doors.credentials_.offer())),
        timers_(&doors.strangers_,
                [this](const Status& why) { refuse(Stranger::kRefused, why.message()); }) {
    timers_.call_at(Reactor::now_ns() + kHandshakeTimeoutNs, [this] {
      refuse(Stranger::kSilent, "it did not introduce itself within 5 s (" + std::to_string(have_) +
                                    " of " + std::to_string(kHelloBytes) + " bytes came)");
    });
    doors_.strangers_.add(socket_.get(), EPOLLIN, this);
  }
  ~Visitor() override {
    if (socket_.is_open()) doors_.strangers_.remove(socket_.get());
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
    const Result<Hello> hello = open_hello(hello_, doors_.credentials_, challenge_);
    if (!hello) return refuse(Stranger::kRefused, hello.status().message());
    if (hello->communicator != doors_.communicator_) {
      return refuse(Stranger::kRefused, "it belongs to another communicator");
    }
    doors_.strangers_.remove(socket_.get());
    Status let_in;
    catching(
        [&] {
          doors_.let_in({std::move(socket_), from_, challenge_, hello_, *hello});
        },
        [&](const Status& why) { let_in = why; });
    if (!let_in) return refuse(Stranger::kRefused, let_in.message());
    doors_.finish(this);  // destroys this
  }

  void refuse(Stranger kind, const std::string& why) {
    doors_.log_.dropped(kind, from_, why);
    doors_.finish(this);
  }

  Doors& doors_;
  Fd socket_;
  const SocketAddress from_;
  const ChallengeBytes challenge_;
  HelloBytes hello_{};
  std::size_t have_ = 0;
  OwnedTimers timers_;
};

Doors::Doors(Reactor& strangers, std::vector<Fd> sockets, std::uint64_t communicator,
             const Credentials& credentials, Reactor& host, Reactor::WakeHandler* handler)
    : strangers_(strangers),
      host_(host),
      handler_(handler),
      communicator_(communicator),
      credentials_(credentials),
      timers_(&strangers, [this](const Status& why) { failed(why); }),
      log_(&timers_) {
  for (Fd& socket : sockets) doors_.push_back(std::make_unique<Door>(*this, std::move(socket)));
}

Doors::~Doors() {
  strangers_.forget(this);
  tell_refusals();
}

void Doors::expect_peers(bool are_expected) {
  if (are_expected_.exchange(are_expected) != are_expected) strangers_.wake(this);
}

std::optional<Doors::Guest> Doors::next_guest(bool* are_more) {
  const std::lock_guard lock(mutex_);
  *are_more = guests_.size() > 1;
  if (guests_.empty()) return std::nullopt;
  Guest first = std::move(guests_.front());
  guests_.erase(guests_.begin());
  return first;
}

Status Doors::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, Status());
}

void Doors::turned_away(Stranger kind, const SocketAddress& from, const std::string& why) {
  const auto record = [&] {
    {
      const std::lock_guard lock(mutex_);
      refusals_.push_back({kind, from, why});
    }
    strangers_.wake(this);
  };
  catching(record, [](const Status&) {});
}

void Doors::on_wake() {
  set_doors();
  tell_refusals();
}

// A line that there is no memory for is no reason to end anything.
void Doors::tell_refusals() {
  std::vector<Refusal> refusals;
  {
    const std::lock_guard lock(mutex_);
    refusals.swap(refusals_);
  }
  for (const Refusal& r : refusals) {
    catching([&] { log_.dropped(r.kind, r.from, r.why); }, [](const Status&) {});
  }
}

// (A guest that its host was not woken for would wait unseen.)
void Doors::let_in(Guest guest) {
  const std::lock_guard lock(mutex_);
  guests_.push_back(std::move(guest));
  try {
    host_.wake(handler_);
  } catch (...) {
    guests_.pop_back();
    throw;
  }
}

void Doors::failed(const Status& why) {
  are_expected_ = false;
  set_doors();
  {
    const std::lock_guard lock(mutex_);
    failure_ = why;
  }
  host_.wake(handler_);
}

void Doors::set_doors() {
  const bool are_open = are_expected_ && !is_out_of_descriptors_ && visitors_.size() < kMaxPending;
  for (const auto& door : doors_) are_open ? door->open() : door->close();
}

void Doors::accept_waiting(int listener) {
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

void Doors::take_in(Fd socket, const SocketAddress& from) {
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

void Doors::finish(Visitor* visitor) {
  std::erase_if(visitors_, [visitor](const auto& v) { return v.get() == visitor; });
  set_doors();
}

}  // namespace riffle
