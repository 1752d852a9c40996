// Reactor: the library's progress thread: epoll, timers and wake-ups. It sleeps when idle.
//
// A caller that waits for something short may do the thread's work itself, with poll(): no thread
// has to be woken then, which costs as much as sending a small message. "Reactor thread" means,
// here and everywhere, the thread that does that work at the moment; there is never more than one.
//
// One per RIFFLE_THREADS, shared by all communicators of the process; an object is bound to one
// reactor for life. The thread starts with the first object and ends when the last is gone and
// nothing is draining; a caller on another thread holds a reference during the call. No
// signals are handled on it. After fork() the child owns no thread: its descriptors are closed (not
// shut down) by a pthread_atfork handler and every call fails cleanly.
//
// An exception on the thread is caught around each handler, logged, and given to that handler's
// on_failure(), never further: as a Status of code kInternal (plugin/config/caught.h). Timers have
// owners, too (base/owned_timers.h); one set here directly is only logged when it throws.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "plugin/transport/base/options.h"
#include "plugin/transport/base/timer_service.h"
#include "topology/base/status.h"

namespace riffle {

class Reactor : public TimerService, public std::enable_shared_from_this<Reactor> {
 public:
  // Called on the reactor thread when the descriptor is ready.
  class FdHandler {
   public:
    virtual ~FdHandler() = default;
    virtual void on_ready(std::uint32_t epoll_events) = 0;
    virtual void on_failure(const Status& /*why*/) {}
  };
  // Called on the reactor thread, once, some time after wake(). forget() it before it goes.
  class WakeHandler {
   public:
    virtual ~WakeHandler() = default;
    virtual void on_wake() = 0;
    virtual void on_failure(const Status& /*why*/) {}

   private:
    friend class ReactorThread;
    std::atomic<bool> is_pending_{false};
  };

  // What has no descriptor that tells when it moves: asked in every turn from start_polling() on.
  // No turn then waits for long, and none at all where something has just moved (pollers.h).
  class Poller {
   public:
    virtual ~Poller() = default;
    virtual bool on_poll() = 0;  // did something move? It may stop polling and end
    virtual void on_failure(const Status& /*why*/) {}
  };

  // A reactor of the process-wide pool (round robin); keeps the thread alive while held. Throws
  // std::system_error when the system gives no thread or descriptor; the C border catches it.
  static std::shared_ptr<Reactor> acquire(const TransportOptions& options);
  // Number `index` of them, modulo RIFFLE_THREADS. One that waits for others (run_and_wait) must
  // have a lower number than they, or two could wait for each other.
  static std::shared_ptr<Reactor> acquire(const TransportOptions& options, std::size_t index);

  // Any thread. Cheap; several wakes before the handler runs count as one. No allocation, but where
  // more than some hundred handlers are woken at once; if that throws, the handler is not woken.
  virtual void wake(WakeHandler* handler) = 0;
  // Any thread that calls again soon, until what it waits for has happened: one turn of the work,
  // if there is any and no other thread does it. Meanwhile the thread yields, and comes back within
  // polling().aside_ns of the last call, or sooner where something is polled. The caller holds the
  // reactor.
  virtual void poll() = 0;
  // Any thread: `more` more pieces of work under way that would keep a caller too long, which is
  // what moves more than polling().bytes. While there are any, poll() does nothing.
  virtual void keep_thread(int more) = 0;
  struct Polling {
    std::size_t bytes;       // what moves at most so many, callers poll for
    std::uint64_t aside_ns;  // that the thread gives a caller to come back
  };
  const Polling& polling() const { return polling_; }
  // Any thread: runs `f` on the reactor thread and returns after it ran (at once when called on the
  // reactor thread); what `f` throws reaches the caller. Set-up and teardown only: it allocates. In
  // a forked child `f` does not run. What nothing waits for is left to a WakeHandler: it has an
  // owner.
  virtual void run_and_wait(const std::function<void()>& f) = 0;

  // Reactor thread only, as are the timers.
  virtual void add(int fd, std::uint32_t epoll_events, FdHandler* handler) = 0;
  virtual void modify(int fd, std::uint32_t epoll_events, FdHandler* handler) = 0;
  virtual void remove(int fd) = 0;
  virtual void forget(WakeHandler* handler) = 0;   // drops a pending wake
  virtual void start_polling(Poller* poller) = 0;  // again: harmless
  virtual void stop_polling(Poller* poller) = 0;

  // What the transport's objects on this reactor have in common, one of each kind: made of
  // `made_of` by the first that asks, gone with the last that holds it.
  enum class Common { kSharedLinks, kLinkClock };
  template <class T, class... Args>
  std::shared_ptr<T> common(Common kind, Args&&... made_of) {
    std::weak_ptr<void>& place = commons_.at(static_cast<std::size_t>(kind));
    if (auto there = std::static_pointer_cast<T>(place.lock())) return there;
    auto made = std::make_shared<T>(std::forward<Args>(made_of)...);
    place = made;
    return made;
  }

  static std::uint64_t now_ns();  // CLOCK_MONOTONIC

 protected:
  explicit Reactor(const Polling& polling) : polling_(polling) {}

 private:
  const Polling polling_;
  std::array<std::weak_ptr<void>, 2> commons_;
};

}  // namespace riffle
