// Pace: does the plan in force still take what it took? What a node's own traffic shows of its link
// is also the work of others: of receivers that many send to, of uplinks and of flows that come and
// go. While all-reduces take as long as they did, nothing has become slower, whatever rates say,
// and a plan for such rates is rather worse than better. Node 0's, replanning interval by
// replanning interval. Pure.
#pragma once

#include <algorithm>

namespace riffle {

class Pace {
 public:
  static constexpr double kSlower = 1.15;  // than the quickest interval
  static constexpr int kIntervals = 2;     // in a row

  // Another plan; `took_us`: what is known of it (0: nothing).
  void restart(double took_us = 0) {
    quickest_us_ = last_us_ = took_us;
    slower_intervals_ = 0;
  }
  // An interval ended in which the plan took so long for some number of bytes, always the same one;
  // 0: nothing was measured. Where a node lacked processor, that it took longer says nothing.
  void took(double us, bool has_processor = true) {
    const bool is_slower = quickest_us_ > 0 && us > kSlower * quickest_us_;
    if (us <= 0 || (is_slower && !has_processor)) return;
    last_us_ = us;
    slower_intervals_ = is_slower ? slower_intervals_ + 1 : 0;
    quickest_us_ = quickest_us_ > 0 ? std::min(quickest_us_, us) : us;
  }
  // All-reduces are known to take no longer than before.
  bool is_steady() const { return quickest_us_ > 0 && slower_intervals_ < kIntervals; }
  // In the last interval that was measured; 0: none was.
  double last_us() const { return last_us_; }

 private:
  double quickest_us_ = 0;  // 0: nothing was measured
  double last_us_ = 0;
  int slower_intervals_ = 0;
};

}  // namespace riffle
