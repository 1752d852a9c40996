#include "plugin/collective/base/background_thread.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <utility>

#include "plugin/config/log.h"

namespace riffle {

BackgroundThread::BackgroundThread(std::shared_ptr<Reactor> reactor)
    : reactor_(std::move(reactor)), owner_pid_(getpid()) {}

BackgroundThread::~BackgroundThread() {
  if (!thread_.joinable()) return;
  if (getpid() != owner_pid_) {  // a forked child has no such thread
    thread_.detach();
    static_cast<void>(changed_.release());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    must_end_ = true;
  }
  changed_->notify_all();
  thread_.join();
}

void BackgroundThread::stop() { *is_stopped_ = true; }

bool BackgroundThread::is_busy() {
  const std::lock_guard lock(mutex_);
  return is_working_ || !jobs_.empty();
}

bool BackgroundThread::run(std::function<void()> work, std::function<void()> then) {
  if (!thread_.joinable()) {
    // Signals are the application's business.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { loop(); });
      pthread_setname_np(thread_.native_handle(), "riffle-plan");
    } catch (const std::exception& e) {
      log_warn("no thread for planning, the plan stays as it is: {}", e.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!thread_.joinable()) return false;
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(work), std::move(then)});
  }
  changed_->notify_all();
  return true;
}

void BackgroundThread::loop() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      is_working_ = false;
      changed_->wait(lock, [this] { return must_end_ || !jobs_.empty(); });
      if (must_end_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      is_working_ = true;
    }
    try {
      job.work();
    } catch (const std::exception& e) {
      log_warn("planning failed, the plan stays as it is: {}", e.what());
    }
    reactor_->run([then = std::move(job.then), stopped = is_stopped_] {
      if (!*stopped) then();
    });
  }
}

}  // namespace riffle
