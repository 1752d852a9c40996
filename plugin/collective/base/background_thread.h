// Background on a thread of its own, which starts with the first work and answers through a
// reactor.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "plugin/collective/base/background.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle {

class BackgroundThread final : public Background, private Reactor::WakeHandler {
 public:
  // `failed`: an answer threw, on the reactor thread.
  using Failed = std::function<void(const Status& why)>;
  BackgroundThread(std::shared_ptr<Reactor> reactor, Failed failed);
  // Waits for the work in progress, so on the reactor's thread only if there is none; drops the
  // rest.
  ~BackgroundThread() override;

  bool run(std::function<void()> work, std::function<void()> then) override;
  // Reactor thread: no `then` runs after this. Before the destructor.
  void stop();
  bool is_busy();

 private:
  struct Job {
    std::function<void()> work, then;
  };
  using Jobs = std::list<Job>;
  void loop();
  void on_wake() override;
  void on_failure(const Status& why) override { failed_(why); }

  const std::shared_ptr<Reactor> reactor_;
  const Failed failed_;
  const int owner_pid_;
  std::mutex mutex_;
  // On the heap because a forked child leaks it: to destroy it would wait for the thread that is
  // not there.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  Jobs jobs_;                // guarded by mutex_
  Jobs done_;                // not yet answered; guarded by mutex_
  bool is_stopped_ = false;  // no answers any more; guarded by mutex_
  bool must_end_ = false;    // guarded by mutex_
  bool is_working_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace riffle
