// The choice among all families of schedules for a fabric: the fastest that mixes well enough.
#include <algorithm>
#include <optional>

#include "topology/base/printed.h"
#include "topology/plan/limits.h"
#include "topology/plan/planner.h"
#include "topology/plan/schedules/contraction.h"
#include "topology/plan/schedules/families.h"
#include "topology/plan/schedules/proposal.h"

namespace riffle {
namespace {

constexpr double kScheduleTie = 1.02;  // as fast: then the one that mixes better
constexpr double kGridTie = 1.05;      // a full grid may be so much slower, for its exactness
constexpr double kLeastGroup = 2;      // mean group size of every node
constexpr int kSlowestMeeting = 4;     // every node meets others at least every so many steps
constexpr int kTries = 6;              // labellings of a small schedule, of which the best is kept
constexpr double kHopeless = 3;        // times the limit: other labels are not tried
constexpr int kFewNodes = 24;          // for which so many are tried
constexpr std::size_t kMostExamined = 24;  // of large fabrics

class Chooser {
 public:
  Chooser(const Fabric& fabric, ScheduleMode mode, const ScheduleOptions& options)
      : view_(fabric), mode_(mode), options_(options) {
    rule_ = {options.delta, options.round_steps, mode != ScheduleMode::kShadowSync, options.kept};
  }

  Result<ScheduleChoice> choose() {
    const FamilyOptions family = family_options(0);
    if (options_.all_nodes) {
      add(all_nodes());
    } else if (mode_ == ScheduleMode::kMoshpit) {
      add(propose_grids(view_, family));
      if (!any_full_grid()) {
        add(propose_incomplete_grids(view_, family));
        add(propose_random_groups(view_, family));
      } else if (options_.dimensions == 0) {
        // The same grids, the axis across racks not as often as the others.
        for (const Ration& ration : rations(view_, family)) {
          if (ration.crossing == Crossing::kAll && ration.slow == 1) add(best_labels(ration));
        }
      }
    } else {
      add(propose_grids(view_, family));
      add(propose_reference(view_, family));
      for (const Ration& ration : rations(view_, family)) add(best_labels(ration));
      if (mode_ == ScheduleMode::kShadowSync) add(all_nodes());
    }
    if (Status s = restrict_to_only(); !s) return s;
    std::stable_sort(proposals_.begin(), proposals_.end(), [&](const auto& a, const auto& b) {
      return a.candidate.time_us < b.candidate.time_us;
    });
    examine();
    return decide();
  }

 private:
  FamilyOptions family_options(int attempt) const {
    return {options_.seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(attempt),
            options_.max_lanes, mode_ == ScheduleMode::kMoshpit ? options_.dimensions : 0};
  }

  bool any_full_grid() const {
    return std::any_of(proposals_.begin(), proposals_.end(), [](const ScheduleProposal& p) {
      return p.cycle.is_grid() && p.cycle.steps.size() > 1;
    });
  }

  // Rounds over all nodes at once: the most mixing for the most traffic.
  std::vector<Cycle> all_nodes() const {
    std::vector<int> all;
    for (const RackView& rack : view_.racks()) {
      all.insert(all.end(), rack.members.begin(), rack.members.end());
    }
    return {{"all nodes", {{all}}, 1, {view_.size()}}};
  }

  // Labels change what meets when, not what it costs.
  std::vector<Cycle> best_labels(const Ration& ration) const {
    std::optional<Cycle> best;
    double least = 0;
    const int tries = view_.size() <= kFewNodes ? kTries : 1;
    for (int i = 0; i < tries; ++i) {
      Cycle cycle = rationed_pairs(view_, ration, family_options(i));
      if (cycle.steps.empty()) return {};
      double deviation = 0;
      if (tries > 1) {
        Cycle one_lane = cycle;
        one_lane.lanes = 1;
        const Mixing mixing = mixing_of(table_of(view_, one_lane), rule_);
        if (!mixing.connected) continue;
        deviation = mixing.deviation;
      }
      if (best && deviation >= least) continue;
      least = deviation;
      best = std::move(cycle);
      if (deviation > kHopeless * options_.max_deviation * rule_.steps) break;
    }
    if (!best) return {};
    return {std::move(*best)};
  }

  void add(std::vector<Cycle> cycles) {
    for (Cycle& cycle : cycles) {
      if (cycle.steps.empty() || cycle.steps.size() > kMaxScheduleSteps) continue;
      // Another family may have come to the same by another way.
      if (std::any_of(proposals_.begin(), proposals_.end(), [&](const ScheduleProposal& p) {
            return p.cycle.name == cycle.name || p.cycle.steps == cycle.steps;
          })) {
        continue;
      }
      add_shuffles(cycle);
      ScheduleProposal proposal;
      proposal.candidate.name = cycle.name;
      predict_time(view_, table_of(view_, cycle), options_, proposal);
      proposal.cycle = std::move(cycle);
      proposals_.push_back(std::move(proposal));
    }
  }

  void add_shuffles(Cycle& cycle) const {
    const Cycle once = cycle;
    for (int i = 1; i < options_.shuffles; ++i) {
      if (cycle.steps.size() + once.steps.size() > kMaxScheduleSteps) break;
      const Cycle other = relabelled(view_, once, options_.seed + static_cast<std::uint64_t>(i));
      cycle.steps.insert(cycle.steps.end(), other.steps.begin(), other.steps.end());
    }
  }

  Status restrict_to_only() {
    if (options_.only.empty()) return Status::ok();
    std::string names;
    for (const ScheduleProposal& p : proposals_) {
      names += (names.empty() ? "\"" : ", \"") + p.candidate.name + "\"";
    }
    std::erase_if(proposals_,
                  [&](const ScheduleProposal& p) { return p.candidate.name != options_.only; });
    if (!proposals_.empty()) return Status::ok();
    return invalid_argument("schedules: there is no schedule called \"" + options_.only +
                            "\" for this fabric, accepted: " + names);
  }

  // Few nodes: all. Else from the fastest on until enough are known.
  void examine() {
    std::size_t examined = 0;
    std::optional<double> first;
    for (ScheduleProposal& p : proposals_) {
      if (view_.size() > kExactNodes) {
        if (examined >= kMostExamined && first) break;
        if (first && mode_ != ScheduleMode::kShadowSync &&
            p.candidate.time_us > kGridTie * *first) {
          break;
        }
      }
      ++examined;
      examine(p);
      if (p.candidate.refused.empty() && !first) first = p.candidate.time_us;
    }
    for (ScheduleProposal& p : proposals_) {
      if (!p.is_examined) p.candidate.refused = "slower; its mixing was not examined";
    }
  }

  void examine(ScheduleProposal& p) const {
    ScheduleCandidate& c = p.candidate;
    p.is_examined = true;
    const ScheduleTable table = table_of(view_, p.cycle);
    const Company company = company_of(p.cycle, view_.size());
    c.group_size = company.least_size;
    if (Status s = verify_contraction(table); !s) {
      c.refused = s.message();
      return;
    }
    const Mixing mixing = mixing_of(table, rule_);
    c.contraction = mixing.contraction;
    c.norm = mixing.norm;
    constexpr double kRounding = 1e-9;
    c.deviation = mixing.deviation < kRounding ? 0 : mixing.deviation;
    c.worst_deviation = mixing.worst_deviation < kRounding ? 0 : mixing.worst_deviation;
    // What nodes did since the snapshot is no node's fault.
    const double own = rule_.current ? 0 : rule_.steps * (1 - 1.0 / view_.size());
    const double limit = own + options_.max_deviation * rule_.steps;
    if (c.deviation > limit) {
      c.refused =
          printed("nodes deviate by %.3g sigma^2, accepted at most %.3g", c.deviation, limit);
    } else if (c.group_size < kLeastGroup) {
      c.refused = printed("a node's groups have %.3g members on average, accepted from %.3g",
                          c.group_size, kLeastGroup);
    } else if (company.longest_alone > kSlowestMeeting) {
      c.refused = printed("a node meets others every %d steps only, accepted at most %d",
                          company.longest_alone, kSlowestMeeting);
    }
  }

  // Smaller is better.
  double merit(const ScheduleProposal& p) const {
    // What nodes deviate in the background grows with the time of a round.
    if (mode_ == ScheduleMode::kShadowSync) return p.candidate.time_us * p.candidate.deviation;
    return p.candidate.time_us;
  }

  Result<ScheduleChoice> decide() {
    const auto usable = [](const ScheduleProposal& p) { return p.candidate.refused.empty(); };
    double least = 0;
    for (const ScheduleProposal& p : proposals_) {
      if (usable(p) && (least == 0 || merit(p) < least)) least = merit(p);
    }
    if (least == 0) {
      return invalid_argument(
          "schedules: none of " + std::to_string(proposals_.size()) + " schedules may be used" +
          (proposals_.empty() ? ""
                              : ", e.g. " + proposals_.front().candidate.name + ": " +
                                    proposals_.front().candidate.refused));
    }
    const ScheduleProposal* chosen = nullptr;
    for (const bool grids : {true, false}) {
      for (const ScheduleProposal& p : proposals_) {
        if (!usable(p) || p.cycle.is_grid() < grids) continue;
        if (merit(p) > least * (grids ? kGridTie : kScheduleTie)) continue;
        if (chosen == nullptr || p.candidate.deviation < chosen->candidate.deviation) chosen = &p;
      }
      if (chosen != nullptr) break;
    }
    ScheduleChoice choice;
    choice.table = table_of(view_, chosen->cycle);
    choice.table.chunk_bytes = chosen->chunk_bytes;
    choice.dimensions = chosen->cycle.dimensions;
    choice.quality = chosen->candidate;
    if (Status s = validate(choice.table); !s) return internal_error(s.message());
    PlanOptions exact;
    exact.seed = options_.seed;
    exact.message_ns = options_.message_ns;
    auto plan_choice = plan(view_.fabric(), options_.bytes, exact);
    if (!plan_choice) return plan_choice.status();
    choice.exact_us = plan_choice->time_us;
    choice.candidates.push_back(chosen->candidate);
    for (const ScheduleProposal& p : proposals_) {
      if (&p != chosen) choice.candidates.push_back(p.candidate);
    }
    choice.reason = reason(choice);
    return choice;
  }

  static std::string reason(const ScheduleChoice& choice) {
    const ScheduleCandidate& q = choice.quality;
    return "limited by " + q.limit + "; " + q.name +
           printed(": %.2f times as fast as the exact plan, nodes deviate by %.3g sigma^2",
                   choice.exact_us / q.time_us, q.deviation);
  }

  FabricView view_;
  ScheduleMode mode_;
  ScheduleOptions options_;
  MixingRule rule_;
  std::vector<ScheduleProposal> proposals_;
};

}  // namespace

Result<ScheduleChoice> choose_schedule(const Fabric& fabric, ScheduleMode mode,
                                       const ScheduleOptions& options) {
  if (Status s = validate(fabric); !s) return s;
  if (fabric.size() < 2) return invalid_argument("schedules: 1 node, accepted from 2");
  if (options.max_lanes < 1 || options.max_lanes > static_cast<int>(kMaxPlanLanes)) {
    return invalid_argument("schedules: " + std::to_string(options.max_lanes) +
                            " lanes, accepted 1.." + std::to_string(kMaxPlanLanes));
  }
  if (options.shuffles < 1) {
    return invalid_argument("schedules: " + std::to_string(options.shuffles) +
                            " shuffles, accepted from 1");
  }
  if (options.bytes < 1) return invalid_argument("schedules: calls of 0 bytes, accepted from 1");
  if (!(options.max_deviation > 0)) {
    return invalid_argument("schedules: a deviation of at most " +
                            std::to_string(options.max_deviation) + ", accepted above 0");
  }
  if (!(options.delta > 0 && options.delta < 2)) {
    return invalid_argument("schedules: delta " + std::to_string(options.delta) +
                            ", accepted between 0 and 2");
  }
  if (options.round_steps < 1) {
    return invalid_argument("schedules: rounds of " + std::to_string(options.round_steps) +
                            " steps, accepted from 1");
  }
  return Chooser(fabric, mode, options).choose();
}

double predicted_us(const Fabric& fabric, const ScheduleTable& table,
                    const ScheduleOptions& options) {
  ScheduleProposal proposal;
  predict_time(FabricView(fabric), table, options, proposal);
  return proposal.candidate.time_us;
}

}  // namespace riffle
