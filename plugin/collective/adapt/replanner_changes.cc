// Replanner: the change to another plan, as node 0 decides it and as every node takes part in it.
#include <algorithm>
#include <exception>
#include <utility>

#include "plugin/collective/adapt/in_seconds.h"
#include "plugin/collective/adapt/replanner.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/printed.h"
#include "topology/fabric/fabric_file.h"

namespace riffle {

void Replanner::change_to(const Weighed& weighed, std::uint64_t horizon_ns) {
  PlanSwitch::Order order;
  order.plans = encode(weighed.choice.plans);
  order.digest = digest(weighed.choice.plans);
  order.horizon_ns = horizon_ns;
  switch_.begin(order);
}

// Several rounds of the tree, and the others' preparing, which is less work than planning was.
std::uint64_t Replanner::horizon_ns() const {
  return options_.least_horizon_ns + 4 * round_ns_ + 2 * planning_ns_;
}

void Replanner::go_back() {
  auto back = std::make_shared<Weighed>(proof_.former());
  back->choice.reason = "the plan before took less";
  back->former_us = measured_us_;
  weighed_ = std::move(back);
  is_going_back_ = true;
  change_to(*weighed_, horizon_ns());
}

void Replanner::decided(const Result<std::uint64_t>& first_seq) {
  const bool is_trial = trials_.is_running();
  const Weighed& to = is_trial ? trials_.in_force() : *weighed_;
  ReplanEvent e = event(first_seq ? ReplanEvent::Kind::kPlanChange : ReplanEvent::Kind::kGivenUp);
  e.cause = is_trial         ? "the model of the network is in doubt, so plans are tried"
            : is_going_back_ ? "all-reduces take longer since the last change"
                             : probe::describe_change(hysteresis_->planned(), to.fabric);
  e.trigger = is_trial         ? ReplanEvent::Trigger::kTrial
              : is_going_back_ ? ReplanEvent::Trigger::kReturn
                               : ReplanEvent::Trigger::kRates;
  e.plan = to.choice.plans.name;
  e.reason = to.choice.reason;
  e.digest = digest(to.choice.plans);
  e.fabric = to.fabric;
  e.time_us = to.choice.time_us;
  e.planned_bytes = options_.planned_bytes;
  e.former_time_us = to.former_us;
  const Fabric planned = hysteresis_->planned();
  // Also where it was given up: no plan is tried twice for the same rates. Nor is one that did not
  // pay, so what it was made for stays the measure of news.
  if (!is_trial) hysteresis_->changed(to, first_seq.is_ok());
  if (is_going_back_) hysteresis_->confirmed(planned);
  if (is_going_back_) proof_.end();
  if (first_seq) {
    e.generation = engine_->newest_generation();
    e.first_seq = *first_seq;
    if (is_trial || is_going_back_ || sync_ || !can_predict_) {
      proof_.end();
    } else {
      Weighed former;
      former.fabric = planned;
      former.choice.plans = *plans_;
      former.choice.time_us = pace_.last_us();
      proof_.begin(std::move(former), to.choice.time_us);
    }
    const bool has_new_groups = to.groups_gain > 1 && !plans_->relaxed.is_empty();
    plans_ = std::make_shared<const PlanSet>(to.choice.plans);
    pace_.restart(is_going_back_ ? to.choice.time_us : 0);
    expected_us_ = planned_us_ = to.choice.time_us;
    if (can_predict_) find_latency(to.fabric);
    if (is_trial) {
      log_info("trying {}, predicted {} for 32 MiB (plan {}, from chunk {} on)", e.plan,
               in_seconds(e.time_us), e.generation, e.first_seq);
      log_trace("that plan is for this network:\n{}", to_toml(to.fabric));
    } else {
      log_info("{}: {}; predicted {} instead of {} for 32 MiB (plan {}, from chunk {} on)", e.cause,
               to.choice.reason, in_seconds(e.time_us), in_seconds(e.former_time_us), e.generation,
               e.first_seq);
      if (has_new_groups) {
        log_info("{}: groups that are {} times as fast there as those before",
                 name_of(options_.mode), printed("%.2f", to.groups_gain));
      }
    }
  } else {
    e.cause += "; but " + first_seq.status().message();
    log_warn("the plan stays as it is: {}", e.cause);
    if (is_trial) trials_.refused();
  }
  weighed_.reset();
  is_going_back_ = false;
  tell(e);
  if (trials_.is_running() && trials_.is_decided()) end_trials();
}

void Replanner::prepare(const PlanSwitch::Order& order,
                        const std::function<void(Status)>& prepared) {
  struct Made {
    Status status = internal_error("cannot take a new plan");  // until it is made
    ThreadedEngine::Generations generations;
  };
  auto made = std::make_shared<Made>();
  const auto make = [made, order, number = engine_->next_generation(), rank = mesh_->rank(),
                     size = mesh_->size(), options = engine_->options()] {
    try {
      const Result<PlanSet> plans = decode_plan_set(order.plans.data(), order.plans.size());
      if (!plans) {
        made->status = plans.status();
      } else if (digest(*plans) != order.digest) {
        made->status = remote_error("the new plan's checksum differs from node 0's");
      } else {
        auto generations = ThreadedEngine::make(*plans, number, rank, size, options);
        made->status = generations.status();
        if (generations) made->generations = std::move(*generations);
      }
    } catch (const std::exception& e) {
      made->status = internal_error(std::string("cannot take a new plan: ") + e.what());
    }
  };
  const auto take = [this, made, prepared] {
    try {
      if (made->status) made->status = engine_->prepare(std::move(made->generations));
    } catch (const std::exception& e) {
      made->status = internal_error(std::string("cannot take a new plan: ") + e.what());
    }
    prepared(made->status);
  };
  if (!background_->run(make, take)) prepared(system_error("no thread to prepare a plan"));
}

std::uint64_t Replanner::hold(std::uint64_t horizon_ns) {
  const bool was_held =
      engine_->holds_reached() > std::exchange(holds_seen_, engine_->holds_reached());
  if (std::exchange(is_far_ahead_, horizon_ns > 0) && was_held) {
    caution_ = std::min(caution_ * 2, 64.0);
  }
  const double expected = chunks_per_ns_ * static_cast<double>(horizon_ns) * caution_;
  const std::uint64_t burst = is_far_ahead_ ? options_.burst_chunks : 0;
  return engine_->hold_after(burst + static_cast<std::uint64_t>(std::min(expected, 1e9)));
}

}  // namespace riffle
