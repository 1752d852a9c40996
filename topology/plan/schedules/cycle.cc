#include "topology/plan/schedules/cycle.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "topology/base/seeded_random.h"
#include "topology/plan/shares.h"

namespace riffle {
namespace {

std::vector<bool> owners_of(const FabricView& view, const std::vector<int>& members) {
  std::map<int, int> of_rack;
  for (int m : members) ++of_rack[view.rack_of(m)];
  int most = 0;
  for (const auto& [rack, count] : of_rack) most = std::max(most, count);
  std::vector<bool> owners;
  for (int m : members) owners.push_back(of_rack[view.rack_of(m)] == most);
  return owners;
}

std::vector<double> weights_of(const FabricView& view, const std::vector<int>& members) {
  std::vector<double> rates;
  for (int m : members) rates.push_back(view.rate_kbps(m));
  std::vector<double> weights = direct_weights(rates);
  const std::vector<bool> owners = owners_of(view, members);
  double kept = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) kept += owners[i] ? weights[i] : 0;
  if (kept <= 0) return weights;  // the owners' links are the slow ones
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!owners[i]) weights[i] = 0;
  }
  return normalized(std::move(weights));
}

}  // namespace

GroupPlan partition_of(const FabricView& view, const NodeGroups& groups) {
  GroupPlan plan;
  plan.nodes = view.size();
  plan.levels.resize(1);
  for (const std::vector<int>& members : groups) {
    if (members.size() < 2) continue;
    const std::vector<double> weights = weights_of(view, members);
    plan.levels[0].groups.push_back({Pattern::kDirect, members, cuts_of(weights, 0, kShareUnits)});
  }
  return plan;
}

Cycle relabelled(const FabricView& view, const Cycle& cycle, std::uint64_t seed) {
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::vector<int>> alike;
  for (int n = 0; n < view.size(); ++n) {
    const NodeLink& node = view.fabric().nodes[static_cast<std::size_t>(n)];
    alike[{view.rack_of(n), node.out_kbps, node.in_kbps}].push_back(n);
  }
  SeededRandom random(seed);
  std::vector<int> place(static_cast<std::size_t>(view.size()));
  for (const auto& [kind, nodes] : alike) {
    std::vector<int> shuffled = nodes;
    random.shuffle(shuffled);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      place[static_cast<std::size_t>(nodes[i])] = shuffled[i];
    }
  }
  Cycle other = cycle;
  for (NodeGroups& groups : other.steps) {
    for (auto& group : groups) {
      for (int& node : group) node = place[static_cast<std::size_t>(node)];
    }
  }
  return other;
}

ScheduleTable table_of(const FabricView& view, const Cycle& cycle) {
  ScheduleTable table;
  table.name = cycle.name;
  table.nodes = view.size();
  table.steps = static_cast<int>(cycle.steps.size());
  table.lanes = cycle.lanes;
  std::vector<std::uint32_t> index;
  for (const NodeGroups& groups : cycle.steps) {
    GroupPlan plan = partition_of(view, groups);
    const auto known = std::find(table.partitions.begin(), table.partitions.end(), plan);
    index.push_back(static_cast<std::uint32_t>(known - table.partitions.begin()));
    if (known == table.partitions.end()) table.partitions.push_back(std::move(plan));
  }
  for (int step = 0; step < table.steps; ++step) {
    for (int lane = 0; lane < table.lanes; ++lane) {
      table.table.push_back(index[static_cast<std::size_t>((step + lane) % table.steps)]);
    }
  }
  return table;
}

}  // namespace riffle
