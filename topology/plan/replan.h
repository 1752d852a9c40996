// When is another plan worth the change? Rates that were measured wander; a plan that follows each
// wandering would change all the time for nothing. So: a clear gain at once, a small one only on
// rates that stay as they are (the way back to the even plan gains little, but for good), and after
// changes in quick succession longer pauses between them.
//
// Pure; weigh() on any thread (it plans, which may take seconds at thousands of nodes).
#pragma once

#include <algorithm>
#include <cstdint>

#include "topology/fabric/fabric.h"
#include "topology/plan/planner.h"

namespace riffle {

struct Weighed {
  Fabric fabric;         // on which it was weighed
  PlanChoice choice;     // the best plan there
  double former_us = 0;  // what the current plan would take there
  // A relaxed step over the current groups, and over those of the choice, there; 0: not known.
  double former_step_us = 0, step_us = 0;
  bool is_relaxed = false;  // such steps are what runs now
  // How many times as long relaxed steps over the current groups would take there; 1: no others.
  double groups_gain = 1;
  double exact_gain() const { return choice.time_us > 0 ? former_us / choice.time_us : 1; }
  double gain() const { return std::max(groups_gain, exact_gain()); }
};
Result<Weighed> weigh(const Fabric& fabric, const PlanSet& current, std::uint64_t bytes,
                      const PlanOptions& options);

// The groups of relaxed modes that go with the plan weighed. They follow the fabric where the exact
// plan does, or where they gain clearly: exact plans of several kinds often take as long, so that
// after a change back the one in force may stay, while groups made for other rates do not suit.
// Where there are no others those in force stay. `gain`: of the others there.
void choose_groups(const PlanSet& current, RelaxedPlans others, double gain, Weighed* weighed);

// True if a rate differs by more than measuring it twice does.
bool is_news(const Fabric& before, const Fabric& now);

class Hysteresis {
 public:
  static constexpr double kClearGain = 1.08;
  static constexpr double kSmallGain = 1.02;
  static constexpr int kSteadyIntervals = 1;  // for a small gain
  static constexpr int kQuickIntervals = 8;   // changes closer than this grow the pause
  static constexpr int kLongestPause = 32;    // replanning intervals
  // Groups that hardly use a slow link leave its rate unmeasured, which then counts as risen until
  // they are others. So while steps would not take clearly longer than promised, a change is tried
  // after a pause, twice as long after every try that did not hold for as long.
  static constexpr int kLongestReturn = 128;

  explicit Hysteresis(Fabric fabric) : live_(fabric), planned_(std::move(fabric)) {}

  // A replanning interval ended with these rates. False: the current plan was made for them.
  bool interval_ended(const Fabric& live);
  // With a gain too small to count, steps over the current groups are promised what they were
  // weighed with.
  bool is_worth_it(const Weighed& weighed);
  // The plan changed, or some node refused the change.
  void changed(const Weighed& to, bool was_taken = true);
  // The best plan is the current one, or another fabric is to be the measure of news.
  void confirmed(const Fabric& fabric);
  const Fabric& planned() const { return planned_; }

 private:
  bool is_return(const Weighed& weighed) const;

  Fabric live_;                  // of the last replanning interval
  Fabric planned_;               // that the current plan was made for
  double promised_step_us_ = 0;  // over the current groups; 0: not known
  double planned_step_us_ = 0;   // ... on the fabric planned
  int steady_intervals_ = 0;
  int intervals_since_change_ = kQuickIntervals;
  int pause_ = 1;
  int return_pause_ = kQuickIntervals;
  bool has_returned_ = false;  // the last change was a way back
};

}  // namespace riffle
