#include "tools/plan/policy_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/numbers.h"
#include "tools/plan/plan_view.h"
#include "topology/plan/schedules/contraction.h"

namespace riffle::tools {
namespace {

constexpr std::size_t kShownCandidates = 12;
constexpr std::uint64_t kShownSteps = 12;

bool is_background(const PolicyView& view) {
  return view.question.mode == ScheduleMode::kShadowSync;
}

double groups_per_step(const ScheduleTable& table) {
  double sum = 0;
  for (int step = 0; step < table.steps; ++step) {
    const GroupPlan& plan = table.at(static_cast<std::uint64_t>(step), 0);
    sum += table.nodes;
    for (const Group& g : plan.levels[0].groups) sum -= static_cast<double>(g.members.size()) - 1;
  }
  return sum / table.steps;
}

std::string members_text(const Group& group, const Fabric& fabric) {
  std::string text;
  for (std::size_t m = 0; m < group.members.size() && m < kShownMembers; ++m) {
    text += (m > 0 ? "+" : "") + fabric.nodes[static_cast<std::size_t>(group.members[m])].name;
  }
  if (group.members.size() > kShownMembers) {
    text += printed(" and %zu more", group.members.size() - kShownMembers);
  }
  return text;
}

std::string steps_text(const PolicyView& view) {
  const ScheduleTable& table = view.choice->table;
  std::string text = printed(
      "\nlane 1 of %d, the others run the same steps in other phases; period of %d steps:\n",
      table.lanes, table.steps);
  const std::uint64_t shown = std::min<std::uint64_t>(kShownSteps, table.steps);
  for (std::uint64_t step = 0; step < shown; ++step) {
    text += printed("step %2d: ", static_cast<int>(step) + 1);
    const auto& groups = table.at(step, 0).levels[0].groups;
    for (std::size_t g = 0; g < groups.size() && g < kShownGroups; ++g) {
      text += (g > 0 ? ", " : "") + members_text(groups[g], *view.fabric);
    }
    if (groups.size() > kShownGroups) {
      text += printed(" and %zu more groups", groups.size() - kShownGroups);
    }
    text += "\n";
  }
  if (static_cast<std::uint64_t>(table.steps) > shown) {
    text += printed("and %d more steps\n", table.steps - static_cast<int>(shown));
  }
  return text;
}

std::string row(const char* name, const std::string& value) {
  return printed("%-34s %s\n", name, value.c_str());
}

std::string numbers_text(const PolicyView& view) {
  const ScheduleCandidate& q = view.choice->quality;
  const double exact_us = view.choice->exact_us;
  std::string text = "\n";
  if (is_background(view)) text += row("rule", describe(view.question.shadow, view.fabric->size()));
  text += row("schedule", q.name);
  if (view.question.options.all_nodes) {
    text += row("a round", us_text(exact_us) + " over all nodes, by the exact plan");
  } else {
    text += row(is_background(view) ? "a round" : "a step",
                us_text(q.time_us) + printed(" (slowest %s), limited by %s",
                                             us_text(q.slowest_us).c_str(), q.limit.c_str()));
  }
  text += row("exact plan", us_text(exact_us));
  if (view.question.full_every > 0 && !is_background(view)) {
    text += row("with full steps",
                us_text(view.mean_us()) +
                    printed(" on average, every %dth step is exact", view.question.full_every));
  }
  text += row("mean group size", printed("at least %.3g for every node", q.group_size));
  text += row("contraction", printed("%.3g of the variance left after a step in the long run, at "
                                     "most %.3g after a period",
                                     q.contraction, q.norm));
  text += row("deviation of a node",
              printed("%.4g sigma^2, of the worst %.4g (stationary, accepted "
                      "up to %.3g%s)",
                      q.deviation, q.worst_deviation, view.question.options.max_deviation,
                      is_background(view) ? " per step beyond its own" : ""));
  text +=
      row("... of its parameters", printed("%.3g x rate x sigma (rms)", std::sqrt(q.deviation)));
  if (view.question.momentum > 0) {
    const double mu = view.question.momentum;
    text += row("... under that momentum", printed("%.3g x rate x sigma (rms; grids of 2 axes)",
                                                   std::sqrt(q.deviation / (1 - mu * mu))));
  }
  for (const auto& [name, value] : view.formulas()) {
    text += row(("formula: " + name).c_str(), printed("%.4g sigma^2", value));
  }
  if (has_pull(view.question.shadow.variant) && is_background(view)) {
    const ShadowSettings& shadow = view.question.shadow;
    const int nodes = view.fabric->size();
    text += row("speed of the nodes' mean",
                printed("%.3g of exact training's where rounds take all the steps between them, "
                        "%.3g where none",
                        shadow_speed(shadow, nodes, 1), shadow_speed(shadow, nodes, 0)));
  }
  text += row("results differ between nodes",
              "yes (class B): only with RIFFLE_OPTIMIZER=sgd, else sums stay exact");
  return text;
}

std::string candidates_text(const PolicyView& view, const Colours& colours) {
  std::string text = printed("\n%-52s %11s %8s %10s  %s\n", "schedule", "predicted", "x exact",
                             "deviation", "why");
  const auto& all = view.choice->candidates;
  for (std::size_t i = 0; i < all.size() && i < kShownCandidates; ++i) {
    const ScheduleCandidate& c = all[i];
    std::string why = c.refused.empty() ? "limited by " + c.limit : c.refused;
    if (i == 0) why = "chosen; " + why;
    const std::string line =
        printed("%-52s %11s %8.2f %10.3g  %s", c.name.c_str(), us_text(c.time_us).c_str(),
                view.choice->exact_us / c.time_us, c.deviation, why.c_str());
    text += (i == 0 ? colours.bold(line) : line) + "\n";
  }
  if (all.size() > kShownCandidates) {
    text += printed("and %zu more (--json has all)\n", all.size() - kShownCandidates);
  }
  return text;
}

nlohmann::json to_json(const ScheduleCandidate& c) {
  return {{"name", c.name},
          {"predicted_us", c.time_us},
          {"slowest_step_us", c.slowest_us},
          {"limit", c.limit},
          {"contraction", c.contraction},
          {"norm", c.norm},
          {"deviation", c.deviation},
          {"worst_deviation", c.worst_deviation},
          {"mean_group_size", c.group_size},
          {"refused", c.refused}};
}

}  // namespace

const char* name_of(ScheduleMode mode) {
  switch (mode) {
    case ScheduleMode::kDsSync:
      return "ds_sync";
    case ScheduleMode::kMoshpit:
      return "moshpit";
    case ScheduleMode::kShadowSync:
      return "shadow_sync";
  }
  return "unknown";
}

double PolicyView::mean_us() const {
  const double step_us = question.options.all_nodes ? choice->exact_us : choice->quality.time_us;
  if (question.full_every < 1 || question.mode == ScheduleMode::kShadowSync) return step_us;
  return step_us + (choice->exact_us - step_us) / question.full_every;
}

std::string PolicyView::headline() const {
  std::string mode = name_of(question.mode);
  if (question.mode == ScheduleMode::kShadowSync) {
    mode += printed(" by the rule %s", name_of(question.shadow.variant));
  }
  return printed(
      "%s, %s: %s predicted, %.2f x as fast as exact sums; nodes deviate by %.3g sigma^2",
      mode.c_str(), choice->table.name.c_str(), us_text(mean_us()).c_str(), gain(),
      choice->quality.deviation);
}

std::vector<std::pair<std::string, double>> PolicyView::formulas() const {
  const int nodes = fabric->size();
  std::vector<std::pair<std::string, double>> all;
  if (question.mode == ScheduleMode::kShadowSync) {
    const double delta = question.options.delta;
    const int steps = question.options.round_steps;
    if (question.shadow.variant == ShadowVariant::kFir) {
      all.emplace_back("FIR per round, before a correction", fir_deviation(nodes, 2 * steps));
      all.emplace_back("FIR per round, after it", fir_deviation(nodes, steps));
      return all;
    }
    const double kept = question.options.kept;
    all.emplace_back(printed("%s, all nodes", name_of(question.shadow.variant)),
                     kept * kept * delta_deviation(nodes, delta, steps));
    return all;
  }
  if (choice->dimensions.size() > 1) {
    all.emplace_back("this full grid", grid_deviation(choice->dimensions));
  }
  const int groups = static_cast<int>(std::lround(groups_per_step(choice->table)));
  if (groups > 1 && groups < nodes) {
    all.emplace_back(printed("%d random groups of %d", groups, nodes),
                     random_groups_deviation(nodes, groups));
  }
  return all;
}

std::string to_text(const PolicyView& view, const Colours& colours) {
  return colours.bold(view.headline()) + "\n" + numbers_text(view) +
         candidates_text(view, colours) + steps_text(view);
}

std::string to_json(const PolicyView& view) {
  using nlohmann::json;
  const ScheduleTable& table = view.choice->table;
  json out = {{"schema", "riffle-plan-policy-1"},
              {"headline", view.headline()},
              {"policy", name_of(view.question.mode)},
              {"bytes", view.question.options.bytes},
              {"nodes", view.fabric->size()},
              {"exact_us", view.choice->exact_us},
              {"mean_us", view.mean_us()},
              {"gain", view.gain()},
              {"full_every", view.question.full_every},
              {"rule", nullptr},
              {"max_deviation", view.question.options.max_deviation},
              {"chosen", to_json(view.choice->quality)},
              {"grid", view.choice->dimensions},
              {"steps", table.steps},
              {"lanes", table.lanes},
              {"chunk_bytes", table.chunk_bytes},
              {"formulas", json::object()},
              {"candidates", json::array()},
              {"partitions", json::array()},
              {"table", json::array()}};
  if (is_background(view)) out["rule"] = describe(view.question.shadow, view.fabric->size());
  for (const auto& [name, value] : view.formulas()) out["formulas"][name] = value;
  for (const ScheduleCandidate& c : view.choice->candidates)
    out["candidates"].push_back(to_json(c));
  for (const GroupPlan& plan : table.partitions) {
    json groups = json::array();
    for (const Group& g : plan.levels[0].groups) {
      groups.push_back({{"members", g.members}, {"cuts", g.cuts}});
    }
    out["partitions"].push_back(std::move(groups));
  }
  const auto lanes = static_cast<std::size_t>(table.lanes);
  for (std::size_t first = 0; first < table.table.size(); first += lanes) {
    const auto begin = table.table.begin() + static_cast<std::ptrdiff_t>(first);
    out["table"].push_back(std::vector<std::uint32_t>(begin, begin + table.lanes));
  }
  return out.dump(2) + "\n";
}

}  // namespace riffle::tools
