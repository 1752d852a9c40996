#include "topology/plan/replan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace riffle {
namespace {

constexpr double kNews = 0.04;

bool differs(std::int64_t a, std::int64_t b) {
  return std::abs(static_cast<double>(a - b)) >
         kNews * static_cast<double>(std::max<std::int64_t>(1, std::max(a, b)));
}

}  // namespace

Result<Weighed> weigh(const Fabric& fabric, const PlanSet& current, std::uint64_t bytes,
                      const PlanOptions& options) {
  Result<PlanChoice> choice = plan(fabric, bytes, options);
  if (!choice) return choice.status();
  Weighed weighed;
  weighed.fabric = fabric;
  weighed.former_us = predict(fabric, current, bytes, options.message_ns).time_us;
  weighed.choice = std::move(*choice);
  return weighed;
}

void choose_groups(const PlanSet& current, RelaxedPlans others, double gain, Weighed* weighed) {
  const bool gains = gain >= Hysteresis::kClearGain;
  const bool follows = gains || weighed->choice.plans.lanes != current.lanes;
  if (others.is_empty() || others == current.relaxed || !follows) {
    weighed->choice.plans.relaxed = current.relaxed;
    return;
  }
  if (gains && weighed->gain() < Hysteresis::kSmallGain) {  // the exact plan stays
    weighed->choice.plans = current;
    weighed->choice.time_us = weighed->former_us;
    weighed->choice.reason = "other groups";
  }
  weighed->choice.plans.relaxed = std::move(others);
  if (gains) weighed->groups_gain = gain;
}

bool is_news(const Fabric& before, const Fabric& now) {
  if (before.nodes.size() != now.nodes.size() || before.racks.size() != now.racks.size()) {
    return true;
  }
  for (std::size_t i = 0; i < now.nodes.size(); ++i) {
    const NodeLink &a = before.nodes[i], &b = now.nodes[i];
    if (differs(a.out_kbps, b.out_kbps) || differs(a.in_kbps, b.in_kbps)) return true;
  }
  for (std::size_t r = 0; r < now.racks.size(); ++r) {
    const RackLink &a = before.racks[r], &b = now.racks[r];
    if (differs(a.up_kbps, b.up_kbps) || differs(a.down_kbps, b.down_kbps)) return true;
  }
  return false;
}

bool Hysteresis::interval_ended(const Fabric& live) {
  ++intervals_since_change_;
  steady_intervals_ = is_news(live_, live) ? 0 : steady_intervals_ + 1;
  live_ = live;
  const bool has_news = is_news(planned_, live);
  if (!has_news) promised_step_us_ = planned_step_us_;
  return has_news;
}

// Steps have not become slower: rates seem to have risen.
bool Hysteresis::is_return(const Weighed& weighed) const {
  return weighed.is_relaxed && weighed.former_step_us > 0 &&
         weighed.former_step_us <= kClearGain * promised_step_us_;
}

bool Hysteresis::is_worth_it(const Weighed& weighed) {
  if (weighed.gain() < kSmallGain) {
    promised_step_us_ = weighed.former_step_us;
    return false;
  }
  if (intervals_since_change_ < pause_) return false;
  if (is_return(weighed) && intervals_since_change_ < return_pause_) return false;
  return weighed.gain() >= kClearGain || steady_intervals_ >= kSteadyIntervals;
}

void Hysteresis::changed(const Weighed& to, bool was_taken) {
  const bool was_return = is_return(to);
  if (was_taken) {
    if (!was_return && has_returned_) {
      const bool has_held = intervals_since_change_ >= return_pause_;
      return_pause_ = has_held ? kQuickIntervals : std::min(2 * return_pause_, kLongestReturn);
    }
    has_returned_ = was_return;
    promised_step_us_ = planned_step_us_ = to.step_us;
  }
  planned_ = to.fabric;
  const bool was_quick = intervals_since_change_ < kQuickIntervals;
  pause_ = was_quick ? std::min(2 * pause_, kLongestPause) : std::max(1, pause_ / 2);
  intervals_since_change_ = 0;
}

void Hysteresis::confirmed(const Fabric& fabric) {
  planned_ = fabric;
  planned_step_us_ = promised_step_us_;
}

}  // namespace riffle
