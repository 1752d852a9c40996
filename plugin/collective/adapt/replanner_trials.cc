// Replanner, node 0: plans tried on real all-reduces where the model of the network is wrong.
#include <algorithm>
#include <cmath>
#include <utility>

#include "plugin/collective/adapt/in_seconds.h"
#include "plugin/collective/adapt/replanner.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

// A plan's own fabric is believed where it takes what was predicted for it, within this.
constexpr double kBelieved = 0.25;
constexpr int kLooksAtPairs = 3;
constexpr std::uint64_t kDoubtsProbing = 128;  // intervals: as rarely as one slow node is doubted
constexpr double kShownGain = 1.15;
constexpr double kShown = 0.12;  // of what all-reduces take: so well racks have to explain it
constexpr int kLooksAtOthers = 2;
constexpr double kTie = 1.03;
constexpr double kFarLag = 1.12;

bool same_members(const Fabric& a, const Fabric& b) {
  const auto same = [](const NodeLink& x, const NodeLink& y) { return x.rack == y.rack; };
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), same);
}

// Of which live rates are no more than another state, if what connect knew was ever right.
bool same_racks(const Fabric& a, const Fabric& b) {
  const auto no_faster = [](const RackLink& x, const RackLink& y) {
    return y.up_kbps == 0 || (x.up_kbps > 0 && x.up_kbps <= y.up_kbps);
  };
  return a.racks.size() == b.racks.size() && same_members(a, b) &&
         std::equal(a.racks.begin(), a.racks.end(), b.racks.begin(), no_faster);
}

// A slow node looks like a rack of its own, and needs no trial.
bool has_lone_node(const Fabric& fabric) {
  std::vector<int> members(fabric.racks.size(), 0);
  for (const NodeLink& n : fabric.nodes) ++members[static_cast<std::size_t>(n.rack)];
  return std::find(members.begin(), members.end(), 1) != members.end();
}

// By more than measuring it twice differs.
bool has_faster_node(const Fabric& fabric, const Fabric& known) {
  constexpr double kFaster = 1.15;
  const auto is_more = [](std::int64_t x, std::int64_t y) {
    return static_cast<double>(x) > kFaster * static_cast<double>(y);
  };
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    const NodeLink &node = fabric.nodes[i], &was = known.nodes[i];
    if (is_more(node.out_kbps, was.out_kbps) || is_more(node.in_kbps, was.in_kbps)) return true;
  }
  return false;
}

double for_bytes(double us_per_byte, std::uint64_t bytes) {
  return us_per_byte * static_cast<double>(bytes);
}

}  // namespace

// A mode's groups are agreed on with its calls; nominal rates predict nothing.
bool Replanner::may_try() const {
  return can_predict_ && !options_.trusts_fabric && options_.plan.only.empty() && !sync_ &&
         !has_node_left_ && expected_us_ > 0 && engine_->generations() == 1;
}

void Replanner::plan_trials(double us_per_byte, std::function<void(std::vector<Weighed>)> then) {
  is_planning_ = true;
  auto plans = std::make_shared<std::vector<Weighed>>();
  const bool runs = background_->run(
      [plans, pairs = pairs(), base = rates_->base(), live = rates_->fabric(), current = plans_,
       measured_us = for_bytes(us_per_byte, options_.planned_bytes), bytes = options_.planned_bytes,
       options = options_.plan] {
        *plans = plans_to_try(pairs, base, live, *current, measured_us, bytes, options);
      },
      [this, plans, then = std::move(then)] {
        is_planning_ = false;
        if (is_on()) then(std::move(*plans));
      });
  if (!runs) is_planning_ = false;
}

void Replanner::begin_trials(const PlanTime& time) {
  log_warn(
      "32 MiB take {} where {} are expected and {} were at first, and no node lacks processor: the "
      "model of the network may be wrong, so other plans are tried",
      in_seconds(for_bytes(time.us_per_byte, options_.planned_bytes)), in_seconds(expected_us_),
      in_seconds(first_us_));
  plan_trials(time.us_per_byte, [this, time](std::vector<Weighed> candidates) {
    begin_trials(time, std::move(candidates));
  });
}

void Replanner::begin_trials(const PlanTime& time, std::vector<Weighed> candidates, double gain) {
  proof_.end();
  Weighed current;
  current.fabric = rates_->fabric();
  current.choice.plans = *plans_;
  current.choice.time_us = expected_us_;
  trials_.begin(std::move(current), time, std::move(candidates), options_.planned_bytes, gain);
  try_next();
}

// Slow nodes explain what all-reduces take as well as an uplink that they share, but where all send
// to all, the pairs tell. A few looks are enough, and one trial of each guess: racks do not move.
// Much later comes a last look.
bool Replanner::looks_at_pairs() const {
  const int looks = interval_ < kDoubtsProbing ? kLooksAtPairs : kLooksAtPairs + 1;
  return looks_at_pairs_ < looks && may_try() && !trials_.is_running() && plans_->name == "direct";
}

void Replanner::look_at_pairs(const PlanTime& time) {
  ++looks_at_pairs_;
  plan_trials(time.us_per_byte, [this, time](std::vector<Weighed> candidates) {
    const double measured_us = for_bytes(time.us_per_byte, options_.planned_bytes);
    // Slow nodes own nothing of a direct plan and send each other nothing, like nodes behind an
    // uplink. What probing has seen of them counts as long as sums take what it promised; but
    // the last look doubts it, or a mistake that agrees with that would stay for good.
    const bool is_as_promised = measured_us <= PlanTrials::kNeverRight * first_us_;
    const bool is_last = looks_at_pairs_ > kLooksAtPairs;
    const bool knows_nodes = has_seen_pairs_ && is_as_promised && !is_last;
    std::erase_if(candidates, [&](const Weighed& w) {
      const auto is_same = [&w](const Fabric& tried) { return same_members(w.fabric, tried); };
      return w.gain() < kShownGain || std::abs(w.former_us / measured_us - 1) > kShown ||
             is_same(rates_->base()) || has_lone_node(w.fabric) ||
             (knows_nodes && has_faster_node(w.fabric, rates_->base())) ||
             std::any_of(tried_racks_.begin(), tried_racks_.end(), is_same);
    });
    if (candidates.empty() || measured_us == 0) return follow(believed());
    for (const Weighed& w : candidates) tried_racks_.push_back(w.fabric);
    log_warn(
        "pairs of nodes show racks with which 32 MiB would take {} instead of {}: that is tried",
        in_seconds(candidates.front().choice.time_us), in_seconds(candidates.front().former_us));
    begin_trials(time, std::move(candidates));
  });
}

// What the model does not know costs some plans more than others: behind short queues a direct plan
// loses what a ring does not, where one flow comes in at a time; levels wait for each other. So
// where the plan lags, a simple one that should take less than it takes is tried, and where it lags
// far, any other one for the same network.
bool Replanner::looks_at_others() const {
  return looks_at_others_ < kLooksAtOthers && may_try() && trials_.is_lagging();
}

void Replanner::look_at_others(const PlanTime& time) {
  ++looks_at_others_;
  plan_trials(time.us_per_byte, [this, time](std::vector<Weighed> candidates) {
    const double measured_us = for_bytes(time.us_per_byte, options_.planned_bytes);
    const auto gain_of = [this](const Weighed& w) {
      return w.choice.time_us <= kTie * expected_us_ ? PlanTrials::kTieGain : PlanTrials::kGain;
    };
    const Fabric& base = rates_->base();
    const bool lags_far = measured_us > kFarLag * expected_us_;
    std::erase_if(candidates, [&](const Weighed& w) {
      const std::string& name = w.choice.plans.name;
      const bool is_simple = name == "ring" || name.starts_with("tree");
      const bool is_for_racks =
          lags_far && same_members(w.fabric, base) && !is_news(base, w.fabric);
      return !(is_simple || is_for_racks) || w.choice.time_us * gain_of(w) > measured_us;
    });
    if (candidates.empty()) return follow(believed());
    const Weighed& first = candidates.front();
    log_info("32 MiB take {} where {} are expected, and {} of a {}: that is tried",
             in_seconds(measured_us), in_seconds(expected_us_), in_seconds(first.choice.time_us),
             first.choice.plans.name);
    const double gain = gain_of(first);
    begin_trials(time, std::move(candidates), gain);
  });
}

void Replanner::trial_interval_ended(const PlanTime& time, bool is_of_one_plan) {
  if (has_node_left_) return trials_.end();
  if (trials_.was_refused()) return try_next();
  // However slow it is: what it shows of the pairs is worth an interval of its own.
  if (plans_->name == "direct" && !is_of_one_plan) return;
  if (!trials_.took(time, is_of_one_plan)) return;
  if (!is_of_one_plan || !trials_.is_open() || pairs().empty()) return try_next();
  plan_trials(trials_.fastest_us_per_byte(), [this](std::vector<Weighed> candidates) {
    trials_.add(std::move(candidates));
    try_next();
  });
}

// Known while a plan is in force that sends along all of them.
PairTimes Replanner::pairs() const {
  PairTimes pairs(static_cast<std::size_t>(mesh_->size()));
  if (plans_->name != "direct") return {};
  for (const NodeRates& r : gathered_) {
    if (r.pairs.size() != pairs.size() || r.rank >= mesh_->size()) return {};
    pairs[static_cast<std::size_t>(r.rank)] = r.pairs;
  }
  const auto is_missing = [&](const auto& row) { return row.size() != pairs.size(); };
  if (std::any_of(pairs.begin(), pairs.end(), is_missing)) return {};
  return pairs;
}

// Nothing is promised ahead: nodes hold for some rounds of the tree, which is less than what a slow
// plan costs meanwhile.
void Replanner::try_next() {
  if (has_node_left_) return trials_.end();
  if (const Weighed* plan = trials_.next()) return change_to(*plan, 0);
  end_trials();
}

void Replanner::end_trials() {
  const Weighed& kept = trials_.fastest();
  const bool is_exact = !trials_.is_fastest_disturbed();
  const double took_us = for_bytes(trials_.fastest_us_per_byte(), options_.planned_bytes);
  const double measured_us = is_exact ? took_us : std::min(took_us, kept.choice.time_us);
  if (trials_.leaves_error()) {
    log_warn(
        "of the plans tried ({}) {} is kept, as none takes less; the model error stays: 32 MiB "
        "take {} where {} are predicted, and what was measured is expected from now on (riffle "
        "explain names the link that limits)",
        trials_.text(), kept.choice.plans.name, in_seconds(took_us),
        in_seconds(kept.choice.time_us));
  } else {
    log_info("of the plans tried ({}) {} is kept", trials_.text(), kept.choice.plans.name);
  }
  const bool is_believed = is_exact &&
                           std::abs(measured_us / kept.choice.time_us - 1) <= kBelieved &&
                           !trials_.is_contradicted(options_.planned_bytes);
  if (is_exact) trusts_model_ = is_believed;
  if (is_believed && !(trials_.was_right() && same_racks(kept.fabric, rates_->base()))) {
    PlanBasis basis;
    basis.fabric = kept.fabric;
    basis.is_nominal = false;
    basis.message_ns = options_.plan.message_ns;
    basis.small_message_ns = options_.plan.small_message_ns;
    rates_.emplace(basis.fabric, basis.is_nominal);
    has_seen_pairs_ = false;
    hysteresis_.emplace(basis.fabric);
    tell_network(basis);
    first_us_ = measured_us;
  } else if (!trials_.is_former_fastest()) {
    hysteresis_->confirmed(kept.fabric);  // what is faster again is news
  }
  expected_us_ = planned_us_ = measured_us;
  pace_.restart(measured_us);
  trials_.end();
}

}  // namespace riffle
