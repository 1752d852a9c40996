#include <algorithm>

#include "topology/plan/candidate.h"
#include "topology/plan/mixture.h"
#include "topology/plan/two_level.h"

namespace riffle {
namespace {

// More and smaller groups than rails have, in ways that the cost model does not see.
constexpr double kMixtureMustGain = 1.03;

double link_kbps(const RackView& rack) { return std::min(rack.up_kbps, rack.down_kbps); }

std::vector<Cluster> clusters_of(const FabricView& view, const LaneOrder& order) {
  std::vector<Cluster> clusters;
  for (const auto& members : order.racks) {
    clusters.push_back({members, link_kbps(view.racks()[view.rack_of(members[0])])});
  }
  return clusters;
}

// One lane: the shares are exact, and lanes would give every chunk's flows other proportions.
Blueprint rails(const FabricView& view) {
  return {"racks x rails", false, [&view](const LaneOrder& order) {
            const auto clusters = clusters_of(view, order);
            return two_level_plan(clusters, optimal_shares(view, clusters), Pattern::kDirect,
                                  Pattern::kDirect);
          }};
}

Blueprint rails_with_ring(const FabricView& view, Pattern inside, Pattern across,
                          const char* variant) {
  return {std::string("racks x rails, ring ") + variant, true,
          [&view, inside, across](const LaneOrder& order) {
            const auto clusters = clusters_of(view, order);
            return two_level_plan(clusters, even_shares(view, clusters), inside, across);
          }};
}

// Some racks inside first, some not, some for a part of the buffer: see mixture.h.
void propose_mixture(const FabricView& view, std::vector<Blueprint>& blueprints) {
  Mixture mixture = best_mixture(view);
  if (mixture.segments.empty() || most_members(view, mixture) > kMaxRailMembers) return;
  std::size_t apart = 0;
  for (std::size_t r = 0; r < view.racks().size(); ++r) {
    apart += std::any_of(mixture.segments.begin(), mixture.segments.end(),
                         [&](const MixtureSegment& s) { return s.apart[r]; });
  }
  std::string name = "racks x rails, one centre";
  if (apart > 0) name += ", " + std::to_string(apart) + " racks apart";
  if (mixture.segments.size() > 1) {
    name += " in " + std::to_string(mixture.segments.size()) + " mixtures";
  }
  blueprints.push_back({std::move(name), false,
                        [&view, mixture = std::move(mixture)](const LaneOrder& order) {
                          return mixed_plan(view, order, mixture);
                        },
                        kMixtureMustGain});
}

}  // namespace

// Racks x rails: reduce inside the racks first, so that only one sum per rack crosses the uplinks.
std::vector<Blueprint> propose_racks(const FabricView& view) {
  const std::size_t racks = view.racks().size();
  if (racks < 2) return {};
  std::vector<Blueprint> blueprints;
  if (racks * static_cast<std::size_t>(view.size()) <= kMaxRailMembers) {
    blueprints.push_back(rails(view));
    blueprints.push_back(rails_with_ring(view, Pattern::kRing, Pattern::kDirect, "inside"));
    blueprints.push_back(rails_with_ring(view, Pattern::kDirect, Pattern::kRing, "across"));
  }
  propose_mixture(view, blueprints);
  return blueprints;
}

}  // namespace riffle
