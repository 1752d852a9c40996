// PlanTrials: is the model of the network right, and if not, which plan is the fastest? Node 0's,
// replanning interval by replanning interval.
//
// Every plan carries its predicted time. If all-reduces take more than kWrong times that, in
// kIntervals in a row in which no node lacked processor, the model is wrong, whatever the cause:
// racks that nothing told of, a fabric file of another network, links that are not shared as the
// planner thinks. Then candidates are tried on real all-reduces, one after the other, and the
// fastest measured one is kept. Sums are exact under any plan, so nothing depends on it but time.
//
// Pure; the owner changes the plans (replanner.h).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "plugin/collective/adapt/rate_reports.h"
#include "topology/plan/replan.h"

namespace riffle {

// What all-reduces took in a replanning interval, by the node that was quickest: others began
// earlier and waited for it. Where others used the same NICs, it says nothing of the network.
struct PlanTime {
  double us_per_byte = 0;       // 0: too little was summed
  std::uint64_t processor = 0;  // percent, of the node that needed most
  double burst_bytes = 0;       // what is summed from idle to idle, on average
  bool is_shared = false;       // others used the same NICs

  // As it would be in bursts of so many bytes by a plan that takes `latency_us` and as much again
  // for each byte.
  PlanTime for_bursts_of(std::uint64_t bytes, double latency_us) const;
  // What it says of a prediction, which is for planned_bytes: nothing if bursts are far shorter.
  // Those only tell whether a plan takes as long as it did.
  PlanTime for_trials() const;
};
PlanTime plan_time(const std::vector<NodeRates>& reports);

// By rank of the sender and of the receiver; empty: not known.
using PairTimes = std::vector<std::vector<probe::PairTime>>;

// What to try where the model on `live` is wrong, `current` left out, which takes `measured_us`.
// In racks first the next best plan for what connect knew. Then plans for what the direct plan has
// shown of all pairs (tomography.h); if it has not run yet, that comes first. Simple plans, too,
// which lose less where links lose what many flows send at once, unless they would be slower still.
// Any thread; plans, so may take long.
std::vector<Weighed> plans_to_try(const PairTimes& pairs, const Fabric& base, const Fabric& live,
                                  const PlanSet& current, double measured_us, std::uint64_t bytes,
                                  const PlanOptions& options);

class PlanTrials {
 public:
  static constexpr double kWrong = 1.25;
  static constexpr int kIntervals = 2;
  static constexpr double kLag = 1.06;  // not wrong, but queues are shorter than the plan needs
  static constexpr int kLagIntervals = 3;
  static constexpr std::uint64_t kNoProcessor = 60;  // percent from which on a node lacks it
  static constexpr int kShortestPause = 16, kLongestPause = 1024;  // replanning intervals
  static constexpr int kPlausible = 8;       // a plausible explanation is doubted so much later
  static constexpr double kGain = 1.03;      // another plan must be faster by this factor
  static constexpr double kTieGain = 1.015;  // ... if it was predicted to be as fast and asks less
  static constexpr int kMostRefusals = 3;
  static constexpr int kBlind = 4;          // intervals that say nothing: no trial waits longer
  static constexpr double kHopeless = 1.5;  // slower than the best so far: no need to look twice
  // A plan for racks that took this factor more than it should on a network: it is another one.
  static constexpr double kRefuted = 1.5;
  // A plan that takes what its fabric predicts, within this: that is the network.
  static constexpr double kExplained = 0.12;
  static constexpr double kContradicted = 1.1;
  static constexpr double kAlike = 0.02;
  // What connect knew has never been right, and what is believed instead is slower by this factor:
  // rather another network than one that has just changed.
  static constexpr double kNeverRight = 1.12;

  // No trial runs, and an interval ended. True: all-reduces took longer than was expected of them,
  // or where `both_ways` clearly less, in so many intervals that something has to follow; or they
  // have long, or from the very beginning, been expected to take longer than at first, and that
  // explanation is in doubt. `is_plausible`: it needs no other network than the one that connect
  // knew, as one node has become slow; it is given time even if that never was right, and doubted
  // more rarely, as a trial of other plans makes all-reduces slower for as long as it takes.
  bool is_due(const PlanTime& time, double expected_us_per_byte, double first_us_per_byte,
              bool both_ways, bool is_plausible);

  void set_message_ns(std::int64_t message_ns) { message_ns_ = message_ns; }  // PlanOptions
  bool was_right() const { return was_right_; }
  void begin(Weighed current, const PlanTime& time, std::vector<Weighed> candidates,
             std::uint64_t planned_bytes, double gain = kGain);
  void add(std::vector<Weighed> candidates);
  bool is_running() const { return is_running_; }
  // All-reduces took more than kLag times what was expected, in kLagIntervals in a row.
  bool is_lagging() const { return lag_intervals_ >= kLagIntervals; }
  // One more interval like the last one, and a trial is due.
  bool is_suspicious() const { return wrong_intervals_ > 0; }
  // An interval ended in which the plan in force ran, maybe after the former one. True: it counts,
  // the next plan is due.
  bool took(const PlanTime& time, bool is_of_one_plan);
  // The plan could not be changed to: the one before stays in force.
  void refused();
  bool was_refused() const { return was_refused_; }
  // The plan to change to, if any is left to try, or the fastest one if another is in force; null:
  // that is in force already, and the trial is over.
  const Weighed* next();
  // It did not turn out to be all that the network allows.
  bool is_open() const { return !is_explained_; }
  // The plan in force is the one to keep: nothing more has to be measured.
  bool is_decided() const { return is_decided_; }
  const Weighed& in_force() const { return tried_[in_force_].weighed; }
  // Of all that were tried.
  const Weighed& fastest() const { return tried_[best()].weighed; }
  double fastest_us_per_byte() const { return tried_[best()].us_per_byte; }
  // Its time is the most that it takes, as a node lacked processor or NICs were shared meanwhile.
  bool is_fastest_disturbed() const { return tried_[best()].is_disturbed; }
  bool is_fastest_in_force() const { return best() == in_force_; }
  // By its fabric another plan would have taken less than the fastest one did, and took more.
  bool is_contradicted(std::uint64_t planned_bytes) const;
  // Nothing is better than what was in force before.
  bool is_former_fastest() const { return best() == 0; }
  // Nothing is better, and that plan takes kWrong times what was predicted of it, and as much more
  // than when this was so at the end of an earlier trial.
  bool leaves_error() const;
  // "direct 1.2, ring 1.4, racks x rails 0.9 s for 32 MiB".
  std::string text() const;
  void end();

 private:
  struct Tried {
    Weighed weighed;
    double us_per_byte = 0;     // 0: not known
    bool is_disturbed = false;  // us_per_byte is the most that it takes, and shows no network
    bool is_measured() const;
  };
  std::size_t best() const;
  // What the trial has shown so far: the network is not the one it was made for.
  bool is_refuted(const Weighed& weighed) const;
  bool has_seen_pairs() const;
  // The plan in force takes as much more than was predicted as the one before all trials: some rate
  // is wrong that all plans have in common, and none will do better than predictions say.
  bool lags_alike() const;

  bool is_running_ = false, is_decided_ = false, is_explained_ = false;
  int wrong_intervals_ = 0, lag_intervals_ = 0, blind_intervals_ = 0;
  int doubt_ = 0;  // of an explanation: intervals that it has been believed, kPlausible for one
                   // that is not plausible
  bool was_right_ = false;  // what was expected at first, in some interval
  int refusals_ = 0;
  bool was_refused_ = false;
  std::size_t former_ = 0;  // in tried_
  int pause_ = kShortestPause, intervals_since_ = kLongestPause;
  std::vector<Tried> tried_;
  std::size_t in_force_ = 0;
  double former_us_ = 0;  // per byte, of the plan in force before
  double first_us_ = 0;   // ... expected at first
  double error_us_ = 0;   // ... taken when leaves_error() was so at the end of a trial
  std::deque<Weighed> left_;
  double planned_bytes_ = 1;  // that predictions are for
  std::int64_t message_ns_ = kMessageNs;
  double gain_ = kGain;
};

}  // namespace riffle
