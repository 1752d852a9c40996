#include "plugin/transport/reactor/reactor_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "plugin/transport/reactor/fork_registry.h"
#include "topology/base/check.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

constexpr std::size_t kExpectedHandlers = 256;  // room made at the start; more only allocate once

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

ReactorThread::ReactorThread(Seat seat, const Polling& polling)
    : Reactor(polling),
      seat_(std::move(seat)),
      generation_(fork_registry::generation()),
      epoll_(require(Fd::make([] { return ::epoll_create1(EPOLL_CLOEXEC); }), "epoll_create1")),
      wake_event_(
          require(Fd::make([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }), "eventfd")),
      aside_ns_(polling.aside_ns) {
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
  RIFFLE_CHECK(fd >= 0, "an open descriptor");
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

}  // namespace riffle
