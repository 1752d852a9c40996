// ReactorThread: what the thread does, turn by turn, and where it sleeps.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/transport/device/placement.h"
#include "plugin/transport/reactor/reactor_thread.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

constexpr std::uint64_t kLongestSleepNs = 60 * kSecond;
constexpr std::uint64_t kLeastAsideNs = 20'000;  // a caller that spins comes sooner
constexpr unsigned long kTimerSlackNs = 1'000;   // short pauses stay short (pollers.h)

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

}  // namespace

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
  const std::uint64_t most_ns = polling().aside_ns;
  const std::uint64_t pause_ns = pollers_.is_empty() ? most_ns : pollers_.pause_ns(now_ns());
  aside_ns_.store(std::clamp(pause_ns, kLeastAsideNs, most_ns), std::memory_order_relaxed);
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
