#include <algorithm>

#include "topology/plan/candidate.h"

namespace riffle {
namespace {

// Roots carry more than others, which costs where all links are in use.
constexpr double kTreeMustGain = 1.03;

// One level: every `radix` holders in a row hand their sums to the first of them. Adds nothing if a
// row is complete.
std::vector<int> add_level(const std::vector<int>& holders, std::size_t radix, Level& level) {
  std::vector<int> left;
  for (std::size_t x = 0; x < holders.size(); x += radix) {
    const std::size_t members = std::min(radix, holders.size() - x);
    left.push_back(holders[x]);
    if (members < 2) continue;
    Group group{Pattern::kDirect, {}, std::vector<Share>(members + 1, kShareUnits)};
    group.cuts[0] = 0;
    group.members.assign(holders.begin() + static_cast<std::ptrdiff_t>(x),
                         holders.begin() + static_cast<std::ptrdiff_t>(x + members));
    level.groups.push_back(std::move(group));
  }
  return left;
}

// First inside the racks, all at once, then across: a sum crosses each uplink once.
GroupPlan build_tree(const LaneOrder& order, std::size_t radix) {
  GroupPlan plan;
  std::vector<std::vector<int>> racks = order.racks;
  for (const auto& rack : racks) plan.nodes += static_cast<int>(rack.size());
  while (std::any_of(racks.begin(), racks.end(), [](const auto& r) { return r.size() > 1; })) {
    Level level;
    for (auto& rack : racks) rack = add_level(rack, radix, level);
    plan.levels.push_back(std::move(level));
  }
  std::vector<int> roots;
  for (const auto& rack : racks) roots.push_back(rack[0]);
  while (roots.size() > 1) {
    Level level;
    roots = add_level(roots, radix, level);
    plan.levels.push_back(std::move(level));
  }
  return plan;
}

}  // namespace

// Trees as levels of groups of which only the first member owns anything: binomial ones, of pairs,
// and flatter ones, which take fewer steps but more messages at a time. Every lane has another
// root, so that the roots' load spreads when there are several chunks. That a tree should follow
// the network's locality, whatever the numbering of the nodes, is Bine trees' lesson (De Sensi et
// al., arXiv 2508.17311); with racks known, rack by rack is the order that crosses uplinks least.
std::vector<Blueprint> propose_tree(const FabricView& view) {
  std::vector<Blueprint> trees;
  for (const std::size_t radix : {2, 4, 8, 32}) {
    if (static_cast<std::size_t>(view.size()) <= radix) break;  // one group is `direct`
    trees.push_back({radix == 2 ? "tree" : "tree of " + std::to_string(radix), true,
                     [radix](const LaneOrder& order) { return build_tree(order, radix); },
                     kTreeMustGain});
  }
  return trees;
}

}  // namespace riffle
