#include "lab/nccl_host/progress.h"

#include <algorithm>
#include <chrono>

namespace riffle::host {
namespace {

// Passes without movement, at least, before the thread begins to sleep: some microseconds, as long
// as a request on a fast link takes.
constexpr int kYields = 16;
// The sleep doubles while nothing moves, up to this many times the first: on a slow network, where
// a request takes milliseconds, polling would else cost the ranks of an emulated cluster 15 % of
// the processors that they share.
constexpr int kLongestSleep = 16;

}  // namespace

Progress::Progress(CollNetLink* collnet, ProfilerFeed& profiler, const ProgressOptions& options)
    : collnet_(collnet),
      profiler_(profiler),
      spin_(options.spin_us),
      idle_sleep_us_(options.idle_sleep_us),
      in_wait_(options.in_wait) {
  if (!in_wait_) thread_ = std::thread([this] { run(); });
}

void Progress::submit(Launch launch) {
  {
    std::scoped_lock lock(mutex_);
    submitted_.push_back(std::move(launch));
    ++launches_;
    idle_ = false;
    attention_ = true;
  }
  wake_.notify_one();
}

bool Progress::wait(int deadline_ms, bool drained) {
  if (in_wait_) return work_until(Clock::now() + std::chrono::milliseconds(deadline_ms));
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, std::chrono::milliseconds(deadline_ms),
                 [&] { return error_ != 0 || (finished_ == launches_ && (!drained || idle_)); });
  return finished_ == launches_ && (!drained || idle_);
}

void Progress::stop() {
  {
    std::scoped_lock lock(mutex_);
    stop_requested_ = true;
    attention_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::accept(Launch launch) {
  for (const ProfilerEvent& op : launch.proxy_ops) profiler_.proxy_op(op);
  for (auto& [link, op] : launch.link_ops) {
    link->post(op);
    if (std::find(active_.begin(), active_.end(), link) == active_.end()) active_.push_back(link);
  }
  for (const CollNetOp& op : launch.collnet_ops) collnet_->post(op);
  kernel_.launch(std::move(launch.lanes));
}

bool Progress::step() {
  bool moved = kernel_.step();
  int result = kSuccess;
  for (NetLink* link : active_) {
    if (result == kSuccess) result = link->progress(&moved);
  }
  std::erase_if(active_, [](NetLink* link) { return link->idle(); });
  if (result == kSuccess && collnet_busy()) {
    result = collnet_->progress(&moved);
    outstanding_.store(collnet_->outstanding(), std::memory_order_relaxed);
  }
  if (result != kSuccess) error_ = result;
  return moved;
}

void Progress::take_submitted(std::unique_lock<std::mutex>& lock) {
  std::vector<Launch> fresh = std::exchange(submitted_, {});
  if (!fresh.empty()) launched_ = Clock::now();
  attention_ = false;
  lock.unlock();
  for (Launch& launch : fresh) accept(std::move(launch));
}

void Progress::advance() {
  if (step()) {
    still_ = 0;
    sleeps_ = 1;
  } else if (++still_ < kYields || idle_sleep_us_ == 0 || Clock::now() < launched_ + spin_) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(idle_sleep_us_ * sleeps_));
    sleeps_ = std::min(2 * sleeps_, kLongestSleep);
  }
}

void Progress::run() {
  for (;;) {
    const bool work = has_work();
    if (!work || attention_.load(std::memory_order_acquire) || kernel_.finished() != finished_) {
      std::unique_lock lock(mutex_);
      finished_ = kernel_.finished();
      idle_ = !work && submitted_.empty();
      done_.notify_all();
      if (idle_) {
        profiler_.sleeps();
        wake_.wait(lock, [&] { return stop_requested_ || !submitted_.empty(); });
      }
      if (stop_requested_) return;
      take_submitted(lock);
    }
    advance();
    if (error_ != 0) {
      // As NCCL's: no further call, until the communicator is torn down.
      std::unique_lock lock(mutex_);
      done_.notify_all();
      wake_.wait(lock, [&] { return stop_requested_; });
      return;
    }
  }
}

bool Progress::work_until(Clock::time_point deadline) {
  if (std::unique_lock lock(mutex_); !submitted_.empty()) take_submitted(lock);
  while (error_ == 0 && has_work() && Clock::now() < deadline) advance();
  if (error_ != 0 || has_work()) return false;
  profiler_.sleeps();
  return true;
}

}  // namespace riffle::host
