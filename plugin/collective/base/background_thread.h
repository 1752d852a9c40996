// Background on a thread of its own, which starts with the first work and answers through a
// reactor.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "plugin/collective/base/background.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle {

class BackgroundThread final : public Background {
 public:
  explicit BackgroundThread(std::shared_ptr<Reactor> reactor);
  // Waits for the work in progress, so on the reactor's thread only if there is none; drops the
  // rest.
  ~BackgroundThread() override;

  bool run(std::function<void()> work, std::function<void()> then) override;
  // Reactor thread: no `then` runs after this.
  void stop();
  bool is_busy();

 private:
  struct Job {
    std::function<void()> work, then;
  };
  void loop();

  const std::shared_ptr<Reactor> reactor_;
  const int owner_pid_;
  std::shared_ptr<bool> is_stopped_ = std::make_shared<bool>(false);  // reactor thread
  std::mutex mutex_;
  // On the heap because a forked child leaks it: to destroy it would wait for the thread that is
  // not there.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::deque<Job> jobs_;     // guarded by mutex_
  bool must_end_ = false;    // guarded by mutex_
  bool is_working_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace riffle
