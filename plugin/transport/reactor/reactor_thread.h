// The reactor behind Reactor::acquire(): one epoll loop on one thread, or on a polling caller.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "plugin/transport/base/timers.h"
#include "plugin/transport/reactor/pollers.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/reactor/socket.h"
#include "topology/host/cpu_list.h"

namespace riffle {

class ReactorThread final : public Reactor {
 public:
  // Where it runs; empty: wherever. Asked by the thread itself until it is told.
  using Seat = std::function<std::optional<CpuList>()>;
  ReactorThread(Seat seat, const Polling& polling);

  void wake(WakeHandler* handler) override;
  void poll() override;
  void keep_thread(int more) override;
  void run_and_wait(const std::function<void()>& f) override;
  void add(int fd, std::uint32_t epoll_events, FdHandler* handler) override;
  void modify(int fd, std::uint32_t epoll_events, FdHandler* handler) override;
  void remove(int fd) override;
  void forget(WakeHandler* handler) override;
  void start_polling(Poller* poller) override { pollers_.add(poller); }
  void stop_polling(Poller* poller) override { pollers_.remove(poller); }
  std::uint64_t call_at(std::uint64_t when_ns, std::function<void()> f) override;
  void cancel(std::uint64_t timer) override;

  // Made by this process, not by the parent of a forked one.
  bool is_of_this_process() const;
  // Ends the thread and deletes the object; from the thread itself it happens after this turn.
  static void retire(ReactorThread* reactor);

 private:
  // A handler with the age of its registration, so that an event that was fetched before remove()
  // never reaches another handler that got the same descriptor number since.
  struct Registration {
    FdHandler* handler = nullptr;
    std::uint32_t age = 0;
  };

  // A call of run_and_wait(), on the stack of the thread that waits for it: destructors wait so,
  // and there may be no memory.
  struct Posted {
    const std::function<void()>& f;
    Posted* next = nullptr;
    std::mutex mutex{};
    std::condition_variable changed{};
    std::exception_ptr thrown{};  // guarded by mutex
    bool is_over = false;         // guarded by mutex
  };

  enum class Sleep { kAwake, kInEpoll, kAside };

  static constexpr std::size_t kEventsPerTurn = 64;
  static constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};  // of the event descriptor

  void loop();
  void take_seat();
  bool does_the_work() const;
  std::uint64_t sleep_limit_ns();
  int wait(std::span<epoll_event> events, std::uint64_t limit_ns);
  void stand_aside();
  bool has_work() const { return !pending_.empty() || first_posted_ != nullptr || must_stop_; }
  void turn(std::span<const epoll_event> events);
  void wake_thread(std::unique_lock<std::mutex>& lock);
  void dispatch(int fd, std::uint32_t age, std::uint32_t events);
  void run_woken();
  void run_posted();
  void run_pollers();
  void run_timers();

  Seat seat_;                      // none once it is taken
  bool has_little_slack_ = false;  // the thread's timers
  const std::uint32_t generation_;
  Fd epoll_;
  Fd wake_event_;
  // Guarded by turn_, as "reactor thread only" is everywhere:
  std::vector<Registration> registrations_;  // by descriptor
  Timers timers_;
  Pollers pollers_;
  std::vector<WakeHandler*> woken_;  // the batch being served; forget() leaves null

  std::mutex turn_;                          // held while the work is done; taken before mutex_
  std::atomic<std::thread::id> worker_{};    // the thread that holds it
  std::atomic<std::uint64_t> polled_ns_{0};  // the last poll()
  std::atomic<std::uint64_t> aside_ns_;      // how long the thread stands aside at the most
  std::atomic<int> large_work_{0};

  std::mutex mutex_;
  std::condition_variable called_back_;
  std::vector<WakeHandler*> pending_;                        // guarded by mutex_
  Posted *first_posted_ = nullptr, *last_posted_ = nullptr;  // guarded by mutex_
  Sleep sleep_ = Sleep::kAwake;                              // the thread's; guarded by mutex_
  std::thread::id poller_;                                   // the last one; guarded by mutex_
  bool must_stop_ = false;                                   // guarded by mutex_
  bool deletes_itself_ = false;                              // guarded by mutex_
  std::thread thread_;
};

}  // namespace riffle
