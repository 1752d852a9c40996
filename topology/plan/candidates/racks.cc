#include <algorithm>

#include "topology/plan/candidates/candidate.h"
#include "topology/plan/two_level.h"

namespace riffle {
namespace {

std::vector<Cluster> clusters_of(const FabricView& view, const LaneOrder& order) {
  std::vector<Cluster> clusters;
  for (const auto& members : order.racks) {
    const RackView& rack = view.racks()[view.rack_of(members[0])];
    clusters.push_back({members, std::min(rack.up_kbps, rack.down_kbps)});
  }
  return clusters;
}

}  // namespace

// Racks x rails: reduce inside the racks first, so that only one sum per rack crosses the uplinks.
std::vector<Blueprint> propose_racks(const FabricView& view) {
  if (view.racks().size() < 2) return {};
  const auto build = [&view](Pattern inside, Pattern across) {
    return [&view, inside, across](const LaneOrder& order) {
      const auto clusters = clusters_of(view, order);
      const bool both_direct = inside == Pattern::kDirect && across == Pattern::kDirect;
      const auto shares =
          both_direct ? optimal_shares(view, clusters) : even_shares(view, clusters);
      return two_level_plan(clusters, shares, inside, across);
    };
  };
  return {{"racks x rails", true, build(Pattern::kDirect, Pattern::kDirect)},
          {"racks x rails, ring inside", true, build(Pattern::kRing, Pattern::kDirect)},
          {"racks x rails, ring across", true, build(Pattern::kDirect, Pattern::kRing)}};
}

}  // namespace riffle
