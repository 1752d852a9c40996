// Replanner, node 0: what live rates ask for: which of them are believed, and the plan for those.
#include <algorithm>
#include <memory>
#include <utility>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

constexpr double kBelievable = 1.15;

// That so many nodes slow down together explains nothing: it is rather one link that they share.
constexpr int kMostSlowNodes = 2;
constexpr double kSlow = 0.8;  // of the rate at connect

// Of the same nodes and racks.
Fabric no_slower(Fabric fabric, const Fabric& than) {
  if (fabric.racks.size() != than.racks.size()) return fabric;
  const auto raise = [](std::int64_t* kbps, std::int64_t least) {
    *kbps = *kbps == 0 || least == 0 ? 0 : std::max(*kbps, least);
  };
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    raise(&fabric.nodes[i].out_kbps, than.nodes[i].out_kbps);
    raise(&fabric.nodes[i].in_kbps, than.nodes[i].in_kbps);
  }
  for (std::size_t k = 0; k < fabric.racks.size(); ++k) {
    raise(&fabric.racks[k].up_kbps, than.racks[k].up_kbps);
    raise(&fabric.racks[k].down_kbps, than.racks[k].down_kbps);
  }
  return fabric;
}

void weigh_groups(const PlanSet& current, const ReplanHooks& hooks, Weighed* weighed) {
  RelaxedPlans others;
  if (hooks.relaxed_plans) others = hooks.relaxed_plans(weighed->fabric, false);
  const auto step_us = [&](const RelaxedPlans& plans) {
    return hooks.step_us && !plans.is_empty() ? hooks.step_us(weighed->fabric, plans) : 0;
  };
  weighed->former_step_us = step_us(current.relaxed);
  const double others_us = step_us(others);
  const double gain = current.relaxed.is_empty() ? Hysteresis::kClearGain
                      : others_us > 0            ? weighed->former_step_us / others_us
                                                 : 1;
  choose_groups(current, std::move(others), gain, weighed);
  weighed->step_us =
      weighed->choice.plans.relaxed == current.relaxed ? weighed->former_step_us : others_us;
}

}  // namespace

// Since connect.
int Replanner::slow_nodes(const Fabric& live) const {
  const Fabric& base = rates_->base();
  int slow = 0;
  for (std::size_t i = 0; i < base.nodes.size(); ++i) {
    const NodeLink &was = base.nodes[i], &is = live.nodes[i];
    slow += static_cast<double>(is.out_kbps) < kSlow * static_cast<double>(was.out_kbps) ||
            static_cast<double>(is.in_kbps) < kSlow * static_cast<double>(was.in_kbps);
  }
  return slow;
}

void Replanner::follow(const Fabric& live) {
  if (!trusts_model_) return;
  if (!is_news_) {
    expected_us_ = planned_us_;
    return;
  }
  if (weighed_ && !is_news(weighed_->fabric, live)) return decide_on(weighed_);

  is_planning_ = true;
  auto result = std::make_shared<std::shared_ptr<Weighed>>();
  const std::uint64_t began_ns = mesh_->now_ns();
  const bool runs = background_->run(
      [result, live, plans = plans_, options = options_, hooks = hooks_] {
        Result<Weighed> w = weigh(live, *plans, options.planned_bytes, options.plan);
        if (!w) return;
        weigh_groups(*plans, hooks, &*w);
        *result = std::make_shared<Weighed>(std::move(*w));
      },
      [this, result, began_ns] {
        is_planning_ = false;
        planning_ns_ = mesh_->now_ns() - began_ns;
        weighed_ = *result;
        if (!weighed_ || !is_on()) return;
        const int slow = slow_nodes(weighed_->fabric);
        if (slow <= kMostSlowNodes && !proof_.is_owed()) {
          expected_us_ = weighed_->former_us;
        }
        decide_on(weighed_);
      });
  if (!runs) is_planning_ = false;
}

// Live rates; but none is lower than it was planned with as long as all-reduces take no longer than
// they did. Not so where a single slow node explains that they always have; where nothing else
// would correct a plan that is wrong from the beginning, as there are no trials (sums may be too
// short for them) or rates were never measured; and with relaxed modes, whose sums take less.
Fabric Replanner::believed() const {
  Fabric live = rates_->fabric();
  const bool has_time = trials_.was_right() || !is_for_trials_;
  const double slower = has_time ? PlanTrials::kWrong : PlanTrials::kNeverRight;
  const bool is_explained = measured_us_ > slower * first_us_ && slow_nodes(live) == 1;
  const bool is_right = pace_.last_us() <= PlanTrials::kWrong * first_us_;
  const bool is_put_to_trial = can_predict_ && !options_.trusts_fabric &&
                               options_.plan.only.empty() && (is_for_trials_ || is_right);
  if (!pace_.is_steady() || is_explained || !is_put_to_trial || sync_) return live;
  return no_slower(std::move(live), hysteresis_->planned());
}

void Replanner::look_for_slow(const Fabric& live,
                              const std::vector<probe::PassiveReport>& reports) {
  const std::vector<int> nodes = slow_->update(live, reports);
  if (nodes.empty() || !hooks_.too_slow || has_node_left_) return;
  std::vector<SlowNode> slow;
  for (const int node : nodes) {
    slow.push_back({node, SlowNodes::rate_of(live.nodes[static_cast<std::size_t>(node)]),
                    slow_->intervals_below(node)});
  }
  hooks_.too_slow(slow);
}

void Replanner::decide_on(const std::shared_ptr<Weighed>& weighed) {
  weighed->is_relaxed = sync_ && sync_->is_in_force();
  // Of every network that was weighed, as the hysteresis learns from it.
  const bool is_worth_it = hysteresis_->is_worth_it(*weighed);
  if (is_same_way(weighed->choice.plans, *plans_)) {
    planned_us_ = weighed->former_us;
    return hysteresis_->confirmed(weighed->fabric);
  }
  const bool is_between = engine_->generations() > 1;  // the last change is not over
  if (has_node_left_ || is_between || !is_worth_it) return;
  // Rates on which the current plan would take longer than it does are not those of the network.
  if (measured_us_ > 0 && weighed->former_us > kBelievable * measured_us_) return;
  change_to(*weighed, horizon_ns());
}

}  // namespace riffle
