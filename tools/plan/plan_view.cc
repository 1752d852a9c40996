#include "tools/plan/plan_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/numbers.h"
#include "tools/terminal/terminal.h"
#include "topology/plan/loads.h"

namespace riffle::tools {
namespace {

constexpr std::size_t kShownLinks = 8;

std::string group_text(const Group& group, const Fabric& fabric) {
  std::string text = printed("%-6s on %s of the buffer: ", exchange_of(group.pattern).name(),
                             share_text(group.end() - group.begin()).c_str());
  for (std::size_t m = 0; m < group.members.size() && m < kShownMembers; ++m) {
    const Share owns = group.cuts[m + 1] - group.cuts[m];
    text += (m > 0 ? ", " : "") + fabric.nodes[static_cast<std::size_t>(group.members[m])].name +
            " " + share_text(owns);
  }
  if (group.members.size() > kShownMembers) {
    text += printed(" and %zu more", group.members.size() - kShownMembers);
  }
  return text;
}

std::string groups_text(const PlanView& view) {
  const GroupPlan& plan = view.choice->plans.lanes.front();
  std::string text = printed("\nlane 1 of %zu, every member with the share that it owns:\n",
                             view.choice->plans.lanes.size());
  for (std::size_t l = 0; l < plan.levels.size(); ++l) {
    const auto& groups = plan.levels[l].groups;
    text += printed("level %zu of %zu: %zu group%s\n", l + 1, plan.levels.size(), groups.size(),
                    groups.size() == 1 ? "" : "s");
    for (std::size_t g = 0; g < groups.size() && g < kShownGroups; ++g) {
      text += "  " + group_text(groups[g], *view.fabric) + "\n";
    }
    if (groups.size() > kShownGroups) {
      text += printed("  and %zu more groups\n", groups.size() - kShownGroups);
    }
  }
  return text;
}

std::string candidates_text(const PlanView& view, const Colours& colours) {
  const PlanChoice& choice = *view.choice;
  const double best = choice.candidates.front().time_us;
  std::string text = printed("\n%-28s %12s %8s  %s\n", "plan", "predicted", "x bound", "why");
  for (std::size_t i = 0; i < choice.candidates.size(); ++i) {
    const Candidate& c = choice.candidates[i];
    std::string why = "chosen; limited by " + c.limit;
    if (i > 0) {
      const double more = best > 0 ? 100 * (c.time_us / best - 1) : 0;
      why = more < 0.5 ? "as fast, but not the simplest"
                       : printed("%.0f %% slower: limited by %s", more, c.limit.c_str());
    }
    const std::string line =
        printed("%-28s %12s %8.3f  %s", c.name.c_str(), us_text(c.time_us).c_str(),
                choice.bound_us > 0 ? c.time_us / choice.bound_us : 0.0, why.c_str());
    text += (i == 0 ? colours.bold(line) : line) + "\n";
  }
  text += printed("%-28s %12s %8.3f  no exact all-reduce is faster (link rates, no headers)\n",
                  "bound", us_text(choice.bound_us).c_str(), 1.0);
  return text;
}

// What the headline answers.
std::string question_text(const PlanView& view) {
  const PlanSet& plans = view.choice->plans;
  std::string text = plans.name + " for " + bytes_text(view.bytes) + " on " +
                     counted(view.fabric->nodes.size(), "node");
  if (!plans.small.is_empty()) {
    text += "; sums of up to " + bytes_text(plans.small.bytes) + " go by " + plans.small.name;
  }
  return text + "\n";
}

std::string links_text(const PlanView& view) {
  std::string text = printed("\n%-36s %14s %12s %12s\n", "link", "rate", "carries", "takes");
  for (std::size_t i = 0; i < view.links.size() && i < kShownLinks; ++i) {
    const LinkTime& link = view.links[i];
    text += printed("%-36s %14s %12s %12s\n", link.name.c_str(), rate_text(link.rate_mbps).c_str(),
                    bytes_text(static_cast<std::uint64_t>(link.bytes)).c_str(),
                    us_text(link.time_us).c_str());
  }
  if (view.links.size() > kShownLinks) {
    text += printed("%zu more take %s or less\n", view.links.size() - kShownLinks,
                    us_text(view.links[kShownLinks].time_us).c_str());
  }
  return text;
}

}  // namespace

std::string share_text(Share units) {
  return printed("%.3g%%", 100.0 * static_cast<double>(units) / kShareUnits);
}

PlanView::PlanView(const Fabric& the_fabric, const PlanChoice& the_choice, std::uint64_t the_bytes)
    : fabric(&the_fabric), choice(&the_choice), bytes(the_bytes) {
  const FabricView seen(the_fabric);
  Loads total(seen);
  for (const GroupPlan& lane : the_choice.plans.lanes) {
    for (const Level& level : lane.levels) {
      for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
        total += loads_of(seen, level, phase);
      }
    }
  }
  const double per_unit =
      static_cast<double>(bytes) / kShareUnits / static_cast<double>(the_choice.plans.lanes.size());
  const auto add = [&](std::string name, std::uint64_t units, double kbps) {
    const double carried = static_cast<double>(units) * per_unit;
    links.push_back({std::move(name), kbps / 1000, carried, kbps > 0 ? carried * 8000 / kbps : 0});
  };
  for (std::size_t n = 0; n < the_fabric.nodes.size(); ++n) {
    const NodeLink& node = the_fabric.nodes[n];
    add("sending of node " + node.name, total.node_out[n].units,
        static_cast<double>(node.out_kbps));
    add("receiving of node " + node.name, total.node_in[n].units,
        static_cast<double>(node.in_kbps));
  }
  for (std::size_t r = 0; r < seen.racks().size(); ++r) {
    const RackView& rack = seen.racks()[r];
    const RackLink& link = the_fabric.racks[static_cast<std::size_t>(rack.id)];
    if (link.up_kbps > 0) add("uplink of rack " + link.name, total.rack_up[r].units, rack.up_kbps);
    if (link.down_kbps > 0) {
      add("downlink of rack " + link.name, total.rack_down[r].units, rack.down_kbps);
    }
  }
  std::stable_sort(links.begin(), links.end(),
                   [](const LinkTime& a, const LinkTime& b) { return a.time_us > b.time_us; });
}

std::string PlanView::limit_text() const {
  const Candidate& best = choice->candidates.front();
  std::string text = best.limit + " limits";
  const auto link = std::find_if(links.begin(), links.end(),
                                 [&](const LinkTime& l) { return l.name == best.limit; });
  if (link == links.end()) return text;
  return text + printed(": %s at %s take %s",
                        bytes_text(static_cast<std::uint64_t>(link->bytes)).c_str(),
                        rate_text(link->rate_mbps).c_str(), us_text(link->time_us).c_str());
}

std::string PlanView::headline() const {
  if (choice->bound_us <= 0) return limit_text();
  const double time_us = choice->candidates.front().time_us;
  return limit_text() + printed("; %s predicted, %.3f x the bound", us_text(time_us).c_str(),
                                time_us / choice->bound_us);
}

std::string to_text(const PlanView& view, const Colours& colours) {
  return colours.bold(view.headline()) + "\n" + question_text(view) + links_text(view) +
         candidates_text(view, colours) + groups_text(view);
}

std::string to_json(const PlanView& view) {
  using nlohmann::json;
  const PlanChoice& choice = *view.choice;
  json out = {{"schema", "riffle-plan-1"},
              {"headline", view.headline()},
              {"bytes", view.bytes},
              {"chosen", choice.plans.name},
              {"limit", choice.candidates.front().limit},
              {"reason", choice.reason},
              {"predicted_us", choice.time_us},
              {"bound_us", choice.bound_us},
              {"nodes", json::array()},
              {"links", json::array()},
              {"candidates", json::array()},
              {"plans", json::parse(to_json(choice.plans))}};
  for (const NodeLink& node : view.fabric->nodes) {
    out["nodes"].push_back(
        {{"name", node.name},
         {"out_mbps", static_cast<double>(node.out_kbps) / 1000},
         {"in_mbps", static_cast<double>(node.in_kbps) / 1000},
         {"rack", view.fabric->racks[static_cast<std::size_t>(node.rack)].name}});
  }
  for (const LinkTime& link : view.links) {
    out["links"].push_back({{"name", link.name},
                            {"rate_mbps", link.rate_mbps},
                            {"bytes", link.bytes},
                            {"time_us", link.time_us}});
  }
  for (const Candidate& c : choice.candidates) {
    out["candidates"].push_back(
        {{"name", c.name}, {"predicted_us", c.time_us}, {"limit", c.limit}});
  }
  return out.dump(2) + "\n";
}

}  // namespace riffle::tools
