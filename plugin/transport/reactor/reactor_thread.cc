#include "plugin/transport/reactor/reactor_thread.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>

#include "plugin/transport/base/caught.h"
#include "plugin/transport/device/placement.h"
#include "plugin/transport/reactor/fork_registry.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

constexpr std::size_t kEventsPerTurn = 64;
constexpr std::size_t kExpectedHandlers = 256;  // room made at the start; more only allocate once
constexpr std::uint64_t kLongestSleepNs = 60 * kSecond;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kLeastAsideNs = 20'000;  // a caller that spins comes sooner
constexpr unsigned long kTimerSlackNs = 1'000;   // short pauses stay short (pollers.h)
constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};

// Runs `f`; an exception becomes a Status for `failed`, and nothing is thrown further.
template <class F, class Failed>
void guarded(F&& f, Failed&& failed) noexcept {
  catching(f, [&](const Status& why) {
    log_caught("on the progress thread", why);
    catching([&] { failed(why); },
             [](const Status& again) { log_caught("while handling an error", again); });
  });
}

template <class F>
void guarded(F&& f) noexcept {
  guarded(std::forward<F>(f), [](const Status&) {});
}

Fd require(Fd fd, const char* what) {
  if (!fd.is_open()) throw std::system_error(errno, std::generic_category(), what);
  return fd;
}

}  // namespace

std::uint64_t Reactor::now_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * kSecond + static_cast<std::uint64_t>(t.tv_nsec);
}

ReactorThread::ReactorThread(Seat seat)
    : seat_(std::move(seat)),
      generation_(fork_registry::generation()),
      epoll_(require(Fd::make([] { return ::epoll_create1(EPOLL_CLOEXEC); }), "epoll_create1")),
      wake_event_(
          require(Fd::make([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }), "eventfd")) {
  pending_.reserve(kExpectedHandlers);
  woken_.reserve(kExpectedHandlers);
  epoll_event event{};
  // Until the thread has read it, polling callers see it too: an edge could be lost to them.
  event.events = EPOLLIN;
  event.data.u64 = kWakeTag;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), &event);
  // The thread inherits a mask without any signal: the application's handlers run on its own.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread_.native_handle(), "riffle");
}

bool ReactorThread::is_of_this_process() const {
  return generation_ == fork_registry::generation();
}

void ReactorThread::retire(ReactorThread* reactor) {
  // In a forked child there is no thread to end, and its locks may be held for ever: leave it be.
  if (!reactor->is_of_this_process()) return;
  // (A polling caller holds it, so it is never given up by another thread within a turn.)
  const bool on_thread = std::this_thread::get_id() == reactor->thread_.get_id();
  {
    std::unique_lock lock(reactor->mutex_);
    reactor->must_stop_ = true;
    reactor->deletes_itself_ = on_thread;
    if (!on_thread) reactor->wake_thread(lock);
  }
  if (on_thread) {
    reactor->thread_.detach();
  } else {
    reactor->thread_.join();
    delete reactor;
  }
}

bool ReactorThread::does_the_work() const {
  return worker_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

// (An awake thread looks at the lists before it sleeps.)
void ReactorThread::wake_thread(std::unique_lock<std::mutex>& lock) {
  const Sleep slept = std::exchange(sleep_, Sleep::kAwake);
  lock.unlock();
  if (slept == Sleep::kAside) called_back_.notify_one();
  if (slept != Sleep::kInEpoll) return;
  const std::uint64_t one = 1;
  (void)!::write(wake_event_.get(), &one, sizeof one);
}

void ReactorThread::keep_thread(int more) {
  if (large_work_.fetch_add(more, std::memory_order_relaxed) > 0 || more < 0) return;
  if (!is_of_this_process()) return;
  polled_ns_.store(0, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  if (sleep_ == Sleep::kAside) wake_thread(lock);
}

void ReactorThread::poll() {
  if (large_work_.load(std::memory_order_relaxed) > 0 || !is_of_this_process()) return;
  polled_ns_.store(now_ns(), std::memory_order_relaxed);
  const std::unique_lock turn_lock(turn_, std::try_to_lock);
  if (!turn_lock.owns_lock()) return;
  {
    std::unique_lock lock(mutex_);
    poller_ = std::this_thread::get_id();
    // In epoll_wait it would be woken by everything that arrives.
    if (sleep_ == Sleep::kInEpoll) wake_thread(lock);
  }
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  turn(std::span(events.data(), static_cast<std::size_t>(std::max(count, 0))));
}

void ReactorThread::wake(WakeHandler* handler) {
  if (handler->is_pending_.exchange(true, std::memory_order_acq_rel)) return;
  if (!is_of_this_process()) return;
  std::unique_lock lock(mutex_);
  try {
    pending_.push_back(handler);
  } catch (...) {
    handler->is_pending_.store(false, std::memory_order_release);
    throw;
  }
  // The polling caller does it in its next call, and the thread yields for that.
  if (sleep_ == Sleep::kAside && poller_ == std::this_thread::get_id()) return;
  wake_thread(lock);
}

void ReactorThread::forget(WakeHandler* handler) {
  if (!is_of_this_process()) return;
  const std::lock_guard lock(mutex_);
  std::erase(pending_, handler);
  for (WakeHandler*& h : woken_) {
    if (h == handler) h = nullptr;
  }
  handler->is_pending_.store(false, std::memory_order_release);
}

void ReactorThread::run_and_wait(const std::function<void()>& f) {
  if (!is_of_this_process()) return;
  if (does_the_work()) return f();
  Posted call{.f = f};
  {
    std::unique_lock lock(mutex_);
    (first_posted_ == nullptr ? first_posted_ : last_posted_->next) = &call;
    last_posted_ = &call;
    wake_thread(lock);
  }
  std::unique_lock lock(call.mutex);
  call.changed.wait(lock, [&] { return call.is_over; });
  if (call.thrown) std::rethrow_exception(call.thrown);
}

void ReactorThread::add(int fd, std::uint32_t epoll_events, FdHandler* handler) {
  const auto index = static_cast<std::size_t>(fd);
  if (registrations_.size() <= index) registrations_.resize(index + 64);
  Registration& r = registrations_[index];
  r.handler = handler;
  ++r.age;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = std::uint64_t{r.age} << 32 | static_cast<std::uint32_t>(fd);
  const bool is_added = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  if (!is_added) r.handler = nullptr;
  RIFFLE_CHECK(is_added, "epoll_ctl ADD: " + errno_text(errno));
}

void ReactorThread::modify(int fd, std::uint32_t epoll_events, FdHandler* handler) {
  Registration& r = registrations_.at(static_cast<std::size_t>(fd));
  r.handler = handler;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = std::uint64_t{r.age} << 32 | static_cast<std::uint32_t>(fd);
  const int failed = ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  RIFFLE_CHECK(failed == 0, "epoll_ctl MOD: " + errno_text(errno));
}

void ReactorThread::remove(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  if (index >= registrations_.size() || registrations_[index].handler == nullptr) return;
  registrations_[index].handler = nullptr;
  ++registrations_[index].age;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

std::uint64_t ReactorThread::call_at(std::uint64_t when_ns, std::function<void()> f) {
  return timers_.add(when_ns, std::move(f));
}

void ReactorThread::cancel(std::uint64_t timer) { timers_.cancel(timer); }

// How long to sleep, 0 if there is work; whole milliseconds unless something is polled. Declares
// the thread asleep, so that from here on every thread that brings work writes to the event
// descriptor; a polling caller does the work, and may set an earlier timer.
std::uint64_t ReactorThread::sleep_limit_ns() {
  const std::lock_guard turn_lock(turn_);
  const std::uint64_t next = timers_.next_ns(), now = now_ns();
  std::uint64_t limit = kLongestSleepNs;
  if (next != Timers::kNever) {
    const std::uint64_t wait_ms = next <= now ? 0 : (next - now + kMillisecond - 1) / kMillisecond;
    limit = std::min(wait_ms * kMillisecond, limit);
  }
  limit = std::min(limit, pollers_.pause_ns(now));
  const std::lock_guard lock(mutex_);
  if (has_work()) return 0;
  sleep_ = Sleep::kInEpoll;
  return limit;
}

// Less than a millisecond takes a call of its own, as kernels before 5.11 have no epoll_pwait2.
int ReactorThread::wait(std::span<epoll_event> events, std::uint64_t limit_ns) {
  if (limit_ns % kMillisecond != 0) {
    // Only where it matters: all other sleeps may be merged with others' as the system likes.
    if (!std::exchange(has_little_slack_, true)) (void)::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
    const timespec limit{0, static_cast<long>(limit_ns)};
    pollfd ready{epoll_.get(), POLLIN, 0};
    (void)::ppoll(&ready, 1, &limit, nullptr);
    limit_ns = 0;
  }
  return ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                      static_cast<int>(limit_ns / kMillisecond));
}

// While a caller polls: sleeps where what arrives does not wake it.
void ReactorThread::stand_aside() {
  std::unique_lock lock(mutex_);
  while (!has_work()) {
    const std::uint64_t now = now_ns();
    const std::uint64_t until =
        polled_ns_.load(std::memory_order_relaxed) + aside_ns_.load(std::memory_order_relaxed);
    if (now >= until) return;
    sleep_ = Sleep::kAside;
    called_back_.wait_for(lock, std::chrono::nanoseconds(until - now));
    sleep_ = Sleep::kAwake;
  }
}

void ReactorThread::take_seat() {
  if (!seat_) return;
  guarded([this] {
    const std::optional<CpuList> cpus = seat_();
    if (!cpus) return;
    placement::move_this_thread(*cpus);
    seat_ = nullptr;
  });
}

void ReactorThread::loop() {
  std::array<epoll_event, kEventsPerTurn> events;
  while (true) {
    take_seat();
    stand_aside();
    const int count = wait(events, sleep_limit_ns());
    {
      const std::lock_guard lock(mutex_);
      sleep_ = Sleep::kAwake;
      if (must_stop_) break;
    }
    const std::span ready(events.data(), static_cast<std::size_t>(std::max(count, 0)));
    std::uint64_t wakes = 0;
    for (const epoll_event& event : ready) {
      if (event.data.u64 == kWakeTag) (void)!::read(wake_event_.get(), &wakes, sizeof wakes);
    }
    const std::lock_guard turn_lock(turn_);
    turn(ready);
  }
  if (deletes_itself_) delete this;
}

// What the network brought comes before timers: after a long pause of the whole process the peers'
// signs of life are read before any of them counts as silent.
void ReactorThread::turn(std::span<const epoll_event> events) {
  worker_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  for (const epoll_event& event : events) {
    const std::uint64_t tag = event.data.u64;
    if (tag == kWakeTag) continue;
    dispatch(static_cast<int>(tag & 0xffffffff), static_cast<std::uint32_t>(tag >> 32),
             event.events);
  }
  run_posted();
  run_woken();
  run_pollers();
  run_timers();
  // What is polled does not wait for a caller that comes back late.
  const std::uint64_t pause_ns = pollers_.is_empty() ? kAsideNs : pollers_.pause_ns(now_ns());
  aside_ns_.store(std::clamp(pause_ns, kLeastAsideNs, kAsideNs), std::memory_order_relaxed);
  worker_.store(std::thread::id(), std::memory_order_relaxed);
}

void ReactorThread::dispatch(int fd, std::uint32_t age, std::uint32_t events) {
  const auto index = static_cast<std::size_t>(fd);
  if (index >= registrations_.size()) return;
  const Registration r = registrations_[index];
  if (r.handler == nullptr || r.age != age) return;
  guarded([&] { r.handler->on_ready(events); },
          [&](const Status& why) {
            const Registration& now = registrations_[index];
            if (now.handler == r.handler && now.age == age) r.handler->on_failure(why);
          });
}

void ReactorThread::run_woken() {
  {
    const std::lock_guard lock(mutex_);
    woken_.swap(pending_);
  }
  for (std::size_t i = 0; i < woken_.size(); ++i) {
    WakeHandler* const handler = woken_[i];
    if (handler == nullptr) continue;
    handler->is_pending_.store(false, std::memory_order_release);
    // During the call forget() sets the entry to null if the handler goes away.
    guarded([&] { handler->on_wake(); },
            [&](const Status& why) {
              if (woken_[i] != nullptr) handler->on_failure(why);
            });
  }
  woken_.clear();
}

void ReactorThread::run_posted() {
  Posted* call = nullptr;
  {
    const std::lock_guard lock(mutex_);
    call = std::exchange(first_posted_, nullptr);
  }
  while (call != nullptr) {
    Posted* const next = call->next;  // the call is gone once its thread hears of it
    std::exception_ptr thrown;
    try {
      call->f();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(call->mutex);
    call->thrown = std::move(thrown);
    call->is_over = true;
    call->changed.notify_one();
    call = next;
  }
}

void ReactorThread::run_pollers() {
  if (pollers_.is_empty()) return;
  pollers_.ask([&](std::size_t i) {
    bool moved = false;
    guarded([&] { moved = pollers_.at(i)->on_poll(); },
            [&](const Status& why) {
              if (Poller* const poller = pollers_.at(i)) poller->on_failure(why);
            });
    return moved;
  });
}

void ReactorThread::run_timers() {
  const std::uint64_t now = now_ns();
  while (std::function<void()> call = timers_.take_due(now)) guarded(call);
}

}  // namespace riffle
