// Runs the kernel and the proxies of a communicator, on a thread of its own or in wait()
// (progress_options.h).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "lab/nccl_host/collnet_link.h"
#include "lab/nccl_host/net_link.h"
#include "lab/nccl_host/profiler_feed.h"
#include "lab/nccl_host/progress_options.h"
#include "lab/nccl_host/work/kernel.h"

namespace riffle::host {

// One kernel launch with the proxy work that belongs to it.
struct Launch {
  std::vector<Lane> lanes;
  std::vector<std::pair<NetLink*, LinkOp>> link_ops;
  std::vector<CollNetOp> collnet_ops;
  std::vector<ProfilerEvent> proxy_ops;  // what the profiler is told when the proxy takes them
};

class Progress {
 public:
  // collnet may be null. The links and the feed must outlive stop().
  Progress(CollNetLink* collnet, ProfilerFeed& profiler, const ProgressOptions& options);
  ~Progress() { stop(); }

  void submit(Launch launch);
  // Until all launches are done (drained: and the proxies too; always so where it does the work, as
  // no other thread would send what is left), the plugin failed, or the time is up; returns whether
  // they are done.
  bool wait(int deadline_ms, bool drained);
  int error() const { return error_.load(); }  // the plugin's first error, 0 = none
  void stop();                                 // between two calls of the plugin; idempotent
  int collnet_outstanding() const { return outstanding_.load(); }

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool work_until(Clock::time_point deadline);
  void take_submitted(std::unique_lock<std::mutex>& lock);
  void advance();  // a step, and a pause if nothing moved
  bool step();
  bool has_work() const { return !kernel_.idle() || !active_.empty() || collnet_busy(); }
  bool collnet_busy() const { return collnet_ != nullptr && !collnet_->idle(); }
  void accept(Launch launch);

  CollNetLink* collnet_;
  ProfilerFeed& profiler_;
  const std::chrono::microseconds spin_;
  const int idle_sleep_us_;
  const bool in_wait_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<Launch> submitted_;  // guarded by mutex_, as the counters
  std::uint64_t launches_ = 0, finished_ = 0;
  bool idle_ = true;
  bool stop_requested_ = false;
  std::atomic<bool> attention_{false};  // submitted_ or stop_requested_ changed
  std::atomic<int> error_{0}, outstanding_{0};
  // Of the thread that does the work:
  Kernel kernel_;
  std::vector<NetLink*> active_;
  Clock::time_point launched_{};
  int still_ = 0;   // steps without movement
  int sleeps_ = 1;  // in units of idle_sleep_us_
  std::thread thread_;
};

}  // namespace riffle::host
