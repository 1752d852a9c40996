#include "plugin/collective/base/background_thread.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/config/log.h"

namespace riffle {

BackgroundThread::BackgroundThread(std::shared_ptr<Reactor> reactor, Failed failed)
    : reactor_(std::move(reactor)), failed_(std::move(failed)), owner_pid_(getpid()) {}

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

void BackgroundThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  reactor_->forget(this);
}

bool BackgroundThread::is_busy() {
  const std::lock_guard lock(mutex_);
  return is_working_ || !jobs_.empty();
}

// One after the other, so that one that throws takes no other with it.
void BackgroundThread::on_wake() {
  Jobs job;
  {
    const std::lock_guard lock(mutex_);
    if (done_.empty()) return;
    job.splice(job.end(), done_, done_.begin());
    if (!done_.empty()) reactor_->wake(this);
  }
  job.front().then();
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
  std::unique_lock lock(mutex_);
  while (true) {
    changed_->wait(lock, [this] { return must_end_ || !jobs_.empty(); });
    if (must_end_) return;
    Jobs job;
    job.splice(job.end(), jobs_, jobs_.begin());
    is_working_ = true;
    lock.unlock();
    catching(job.front().work, [](const Status& why) {
      log_caught("planning failed, the plan stays as it is", why);
    });
    lock.lock();
    is_working_ = false;
    if (is_stopped_) continue;
    done_.splice(done_.end(), job);
    catching([this] { reactor_->wake(this); },
             [](const Status& why) { log_caught("a plan is late", why); });
  }
}

}  // namespace riffle
