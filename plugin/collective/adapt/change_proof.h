// ChangeProof: a plan that live rates asked for has to prove itself. What rates promise, a network
// may not keep: flows that come and go are taken for links that became slower, and a gain of a few
// percent on paper can be a loss. So what the plan before took is remembered, and if the new one
// takes longer, the one before comes back. Node 0's, replanning interval by replanning interval.
//
// Pure; the owner changes the plans (replanner.h).
#pragma once

#include <utility>

#include "topology/plan/replan.h"

namespace riffle {

class ChangeProof {
 public:
  static constexpr double kWorse = 1.03;    // than before, in kIntervals in a row
  static constexpr double kFarWorse = 1.1;  // ... or once
  static constexpr int kIntervals = 2;
  static constexpr double kKept = 1.12;  // of what was promised

  // The plan changed from `former`, its time being what it took for some number of bytes (0: not
  // known), to one that promises less. Of a plan that was in force for too short a time nothing is
  // known: then the one before it is what may come back, if any was.
  void begin(Weighed former, double promised_us) {
    if (former.choice.time_us > 0 || !may_come_back_) former_ = std::move(former);
    may_come_back_ = former_.choice.time_us > 0;
    promised_us_ = promised_us;
    intervals_ = worse_intervals_ = 0;
  }
  // The plan in force is there for other reasons.
  void end() {
    may_come_back_ = false;
    promised_us_ = 0;
  }

  // An interval ended in which only the new plan ran and no node lacked processor; it took so long
  // for as many bytes (0: nothing was measured). True: former() should come back.
  bool is_refuted(double took_us) {
    if (took_us <= 0) return false;
    if (took_us <= kKept * promised_us_) promised_us_ = 0;
    if (!may_come_back_) return false;
    const double former_us = former_.choice.time_us;
    worse_intervals_ = took_us > kWorse * former_us ? worse_intervals_ + 1 : 0;
    if (took_us > kFarWorse * former_us || worse_intervals_ == kIntervals) return true;
    if (++intervals_ >= kIntervals && worse_intervals_ == 0) may_come_back_ = false;
    return false;
  }
  // The plan has never taken as little as it promised: nothing else explains that but rates that
  // are not those of the network.
  bool is_owed() const { return promised_us_ > 0; }
  const Weighed& former() const { return former_; }

 private:
  Weighed former_;
  bool may_come_back_ = false;
  double promised_us_ = 0;                   // 0: kept
  int intervals_ = 0, worse_intervals_ = 0;  // since the change; the latter in a row
};

}  // namespace riffle
