#include "topology/plan/planner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "topology/base/printed.h"
#include "topology/plan/candidate.h"
#include "topology/plan/cost.h"
#include "topology/plan/limits.h"

namespace riffle {
namespace {

// Differences below this are noise of the model: the simpler family wins.
constexpr double kPlanTie = 1.001;

// What the model does not know (busy processors, queues) costs plans more in which many flows meet
// at a node. So within this factor the one with the fewest wins, down to a number that does no
// harm.
constexpr double kCrowdTie = 1.03;
constexpr int kFewPartners = 8;

int partners_in(const GroupPlan& plan) {
  int sum = 0;
  for (const Level& level : plan.levels) {
    int most = 0;
    for (const Group& g : level.groups) {
      most = std::max(most, exchange_of(g.pattern).partners(static_cast<int>(g.members.size())));
    }
    sum += most;
  }
  return sum;
}

// Where nodes share processors, which the model does not know to be the limit. Beside real NCCL,
// with 4 nodes and more on 2 processors, two trees, which send few messages, took 0.78 to 0.97
// times as long as direct for 1 to 16 MiB on 4, 8 and 16 nodes, 1.0 and 1.1 times on 6. On 3 nodes
// they took 1.2 to 1.4 times as long. Grids gained less on the whole.
constexpr const char* kOnSharedProcessors = "double-tree";

// Members of all groups of all lanes, roughly: they make the size of a plan set on the wire.
constexpr std::size_t kMaxPlannedMembers = std::size_t{1} << 19;

std::size_t members_of(const GroupPlan& plan) {
  std::size_t sum = 1;
  for (const Level& level : plan.levels) {
    for (const Group& group : level.groups) sum += group.members.size();
  }
  return sum;
}

// Plans of thousands of nodes are large, so only the chosen one is kept; it is built again.
struct Proposal {
  Blueprint blueprint;
  std::uint32_t chunk_bytes, busy_bytes;
  Candidate cost;
  double small_us;  // predicted for kSmallPlannedBytes
  int crowd;        // flows that a node sends at a time, kFewPartners at least

  double judged_us() const { return cost.time_us * blueprint.must_gain; }
};

using Proposals = std::vector<Proposal>;

template <class Counts>
double least_us(const Proposals& proposals, Counts counts) {
  double least = std::numeric_limits<double>::infinity();
  for (const Proposal& p : proposals) {
    if (counts(p)) least = std::min(least, p.judged_us());
  }
  return least;
}

Proposals::iterator chosen(Proposals& proposals, const FabricView& view,
                           const PlanOptions& options) {
  if (options.share_processors) {
    const auto best = std::find_if(proposals.begin(), proposals.end(), [](const Proposal& p) {
      return p.blueprint.name == kOnSharedProcessors;
    });
    if (best != proposals.end()) return best;
  }
  const double best_us = least_us(proposals, [](const Proposal&) { return true; });
  const double tie = view.racks().size() > 1 ? kPlanTie : kCrowdTie;
  int crowd = std::numeric_limits<int>::max();
  for (const Proposal& p : proposals) {
    if (p.judged_us() <= best_us * tie) crowd = std::min(crowd, p.crowd);
  }
  const auto fits = [crowd](const Proposal& p) { return p.crowd == crowd; };
  const double least = least_us(proposals, fits);
  return std::find_if(proposals.begin(), proposals.end(), [&](const Proposal& p) {
    return fits(p) && p.judged_us() <= least * kPlanTie;
  });
}

Status check(const PlanOptions& options) {
  if (options.max_lanes < 1 || options.max_lanes > static_cast<int>(kMaxPlanLanes)) {
    return invalid_argument("planner: " + std::to_string(options.max_lanes) +
                            " lanes, accepted 1.." + std::to_string(kMaxPlanLanes));
  }
  if (const auto least = std::min(options.message_ns, options.small_message_ns); least < 0) {
    return invalid_argument("planner: " + std::to_string(least) +
                            " ns per message, accepted from 0");
  }
  std::string names;
  for (const Family& family : families()) {
    if (options.only.empty() || options.only == family.name) return Status::ok();
    names += (names.empty() ? "" : ", ") + std::string(family.name);
  }
  return invalid_argument("planner: there is no kind of plan called \"" + options.only +
                          "\", accepted: " + names + ", or nothing for the best");
}

// Plans of many members spread their load well in each lane already, so they get fewer lanes.
PlanSet build(const FabricView& view, const Blueprint& blueprint, const PlanOptions& options) {
  PlanSet plans{{}, blueprint.name};
  int lanes = blueprint.shuffles ? options.max_lanes : 1;
  for (int lane = 0; lane < lanes; ++lane) {
    plans.lanes.push_back(blueprint.build(lane_order(view, lane, options.seed)));
    const std::size_t affordable = kMaxPlannedMembers / members_of(plans.lanes[0]);
    lanes = std::min(lanes, static_cast<int>(std::max<std::size_t>(affordable, 1)));
  }
  return plans;
}

std::string time_text(double us) {
  if (us < 1e4) return printed("%.0f us", us);
  return us < 1e7 ? printed("%.1f ms", us / 1e3) : printed("%.1f s", us / 1e6);
}

// In whole MiB or KiB where it is that.
std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " bytes";
}

bool is_forced(const PlanOptions& options) {
  return !options.only.empty() || !options.exactly.empty();
}

std::string reason(const PlanChoice& choice, std::uint64_t bytes, const PlanOptions& options) {
  const Candidate& best = choice.candidates.front();
  // Of plans that take about as long the one of fewer flows per node is taken.
  const bool is_tie = choice.candidates.size() > 1 && choice.candidates[1].time_us < best.time_us;
  const bool is_for_processors = options.share_processors && best.name == kOnSharedProcessors;
  std::string text = best.limit + " sets the pace: " + best.name +
                     (is_forced(options)  ? ", as demanded, takes "
                      : is_for_processors ? ", the choice for shared processors, takes "
                      : is_tie            ? ", of those that take about as long, takes "
                                          : ", the fastest known plan, takes ") +
                     time_text(best.time_us) + " for " + size_text(bytes) + " on " +
                     std::to_string(choice.plans.lanes[0].nodes) +
                     " nodes; no exact algorithm needs less than " + time_text(choice.bound_us);
  if (choice.candidates.size() > 1) {
    const Candidate& next = choice.candidates[1];
    text += "; next is " + next.name + " with " + time_text(next.time_us);
  }
  return text;
}

// `first` takes large sums.
void add_small(const FabricView& view, const Proposals& proposals, const Proposal& first,
               const PlanOptions& options, PlanChoice* choice) {
  const auto best =
      std::min_element(proposals.begin(), proposals.end(),
                       [](const auto& a, const auto& b) { return a.small_us < b.small_us; });
  if (best->small_us * kSmallGain > first.small_us) return;
  PlanSet plans = build(view, best->blueprint, options);
  choice->plans.small = {std::move(plans.lanes), std::move(plans.name), kMostSmallBytes};
  choice->reason += "; sums of up to " + std::to_string(kMostSmallBytes >> 10) + " KiB go by " +
                    best->blueprint.name + ", " + time_text(best->small_us) + " instead of " +
                    time_text(first.small_us) + " for " + std::to_string(kSmallPlannedBytes >> 10) +
                    " KiB";
}

PlanChoice alone() {
  PlanChoice choice;
  choice.plans = {{GroupPlan{1, {}}}, "alone"};
  choice.candidates = {{"alone", 0, "nothing"}};
  choice.reason = "a single node has nothing to exchange";
  return choice;
}

}  // namespace

Result<PlanChoice> plan(const Fabric& fabric, std::uint64_t bytes, const PlanOptions& options) {
  if (Status s = validate(fabric); !s) return s;
  if (Status s = check(options); !s) return s;
  if (fabric.size() == 1) return alone();

  const FabricView view(fabric);
  Proposals proposals;
  for (const Family& family : families()) {
    if (!options.only.empty() && options.only != family.name) continue;
    for (Blueprint& blueprint : family.propose(view)) {
      if (!options.exactly.empty() && options.exactly != blueprint.name) continue;
      const PlanSet plans = build(view, blueprint, options);
      const PlanCost cost = cost_of(view, plans);
      Prediction p = predict(view, cost, bytes, options.message_ns);
      const Prediction small = predict(view, cost, kSmallPlannedBytes, options.small_message_ns);
      Candidate candidate{blueprint.name, p.time_us, std::move(p.limit)};
      proposals.push_back(
          {std::move(blueprint), p.chunk_bytes,
           busy_bytes(view, cost, p.chunk_bytes, plans.windowed_chunks(), options.message_ns),
           std::move(candidate), small.time_us,
           std::max(partners_in(plans.lanes[0]), kFewPartners)});
    }
  }
  if (proposals.empty() && options.only_if_it_applies) {
    PlanOptions any = options;
    any.only.clear();
    any.exactly.clear();
    any.only_if_it_applies = false;
    return plan(fabric, bytes, any);
  }
  if (proposals.empty()) {
    return invalid_argument("planner: \"" + options.only + options.exactly +
                            "\" does not apply to " + std::to_string(view.size()) + " nodes in " +
                            std::to_string(view.racks().size()) + " racks");
  }
  const auto faster = [](const Proposal& a, const Proposal& b) {
    return a.cost.time_us < b.cost.time_us;
  };
  const auto best = chosen(proposals, view, options);
  std::rotate(proposals.begin(), best, best + 1);
  std::stable_sort(proposals.begin() + 1, proposals.end(), faster);

  PlanChoice choice;
  choice.plans = build(view, proposals.front().blueprint, options);
  choice.plans.chunk_bytes = proposals.front().chunk_bytes;
  choice.plans.busy_bytes = options.has_nominal_rates ? 0 : proposals.front().busy_bytes;
  choice.time_us = proposals.front().cost.time_us;
  choice.bound_us = bound_us(fabric, bytes);
  for (Proposal& p : proposals) choice.candidates.push_back(std::move(p.cost));
  choice.reason = reason(choice, bytes, options);
  if (bytes > kMostSmallBytes && !is_forced(options)) {
    add_small(view, proposals, proposals.front(), options, &choice);
  }
  if (Status s = validate(choice.plans); !s) return internal_error(s.message());
  return choice;
}

}  // namespace riffle
