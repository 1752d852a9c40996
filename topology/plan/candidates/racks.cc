#include <algorithm>
#include <set>

#include "topology/plan/candidates/candidate.h"
#include "topology/plan/two_level.h"

namespace riffle {
namespace {

constexpr std::size_t kMaxApart = 4;  // sets of racks to take apart that are worth a try
using RackSet = std::set<int>;        // indices in FabricView::racks()

double link_kbps(const RackView& rack) { return std::min(rack.up_kbps, rack.down_kbps); }

// Racks become clusters, except that each node of a rack in `apart` is a cluster by itself.
std::vector<Cluster> clusters_of(const FabricView& view, const LaneOrder& order,
                                 const RackSet& apart) {
  std::vector<Cluster> clusters;
  for (const auto& members : order.racks) {
    const int index = view.rack_of(members[0]);
    const double link = link_kbps(view.racks()[index]);
    if (!apart.contains(index)) {
      clusters.push_back({members, link});
      continue;
    }
    for (int n : members) clusters.push_back({{n}, std::min(link, view.rate_kbps(n))});
  }
  return clusters;
}

// Which racks to take apart. Reducing inside a rack first relieves its uplink but costs its nodes,
// so the first to go are those with the least to gain: most nodes for the rate that the uplink
// lacks. It is the order in which the bound takes racks apart, and again only prefixes count (see
// bound.cc).
std::vector<RackSet> sets_apart(const FabricView& view) {
  struct Gain {
    int rack;
    double merged, lacking;
  };
  std::vector<Gain> gains;
  for (int r = 0; r < static_cast<int>(view.racks().size()); ++r) {
    const RackView& rack = view.racks()[r];
    if (rack.members.size() < 2) continue;
    const double rate = std::min(rack.out_kbps, rack.in_kbps);
    gains.push_back(
        {r, static_cast<double>(rack.members.size() - 1), std::max(0.0, rate - link_kbps(rack))});
  }
  std::stable_sort(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) {
    return a.merged * b.lacking > b.merged * a.lacking;
  });
  std::vector<RackSet> sets;
  RackSet apart;
  for (std::size_t i = 0; i < gains.size() && sets.size() < kMaxApart; ++i) {
    apart.insert(gains[i].rack);
    const bool same_class = i + 1 < gains.size() && gains[i].lacking == 0 &&
                            gains[i + 1].lacking == 0;  // uplinks that are no limit: all at once
    if (!same_class) sets.push_back(apart);
  }
  return sets;
}

bool is_buildable(const FabricView& view, std::size_t clusters) {
  return clusters * static_cast<std::size_t>(view.size()) <= kMaxRailMembers;
}

Blueprint rails(const FabricView& view, RackSet apart) {
  std::string name = "racks x rails";
  if (!apart.empty()) name += ", " + std::to_string(apart.size()) + " racks apart";
  return {name, true, [&view, apart = std::move(apart)](const LaneOrder& order) {
            const auto clusters = clusters_of(view, order, apart);
            return two_level_plan(clusters, optimal_shares(view, clusters), Pattern::kDirect,
                                  Pattern::kDirect);
          }};
}

Blueprint rails_with_ring(const FabricView& view, Pattern inside, Pattern across,
                          const char* variant) {
  return {std::string("racks x rails, ring ") + variant, true,
          [&view, inside, across](const LaneOrder& order) {
            const auto clusters = clusters_of(view, order, {});
            return two_level_plan(clusters, even_shares(view, clusters), inside, across);
          }};
}

}  // namespace

// Racks x rails: reduce inside the racks first, so that only one sum per rack crosses the uplinks.
std::vector<Blueprint> propose_racks(const FabricView& view) {
  const std::size_t racks = view.racks().size();
  if (racks < 2 || !is_buildable(view, racks)) return {};
  std::vector<Blueprint> blueprints{
      rails(view, {}),
      rails_with_ring(view, Pattern::kRing, Pattern::kDirect, "inside"),
      rails_with_ring(view, Pattern::kDirect, Pattern::kRing, "across"),
  };
  for (RackSet& apart : sets_apart(view)) {
    std::size_t clusters = racks;
    for (int r : apart) clusters += view.racks()[r].members.size() - 1;
    if (is_buildable(view, clusters)) blueprints.push_back(rails(view, std::move(apart)));
  }
  return blueprints;
}

}  // namespace riffle
