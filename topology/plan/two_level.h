// Two levels over clusters of nodes (racks, or parts of one rack): inside every cluster the buffer
// is shared out over its members; then, for every part of the buffer, the owners in all clusters
// reduce it across ("rails"). Clusters of different size or rates cut the buffer differently; the
// common refinement of their cuts gives the parts.
#pragma once

#include <vector>

#include "topology/plan/fabric_view.h"
#include "topology/plan/group_plan.h"

namespace riffle {

// Uneven clusters have up to one rail per node with one member per cluster. Families propose no
// plans of more members than this: they would be larger than what is gained.
inline constexpr std::size_t kMaxRailMembers = std::size_t{1} << 20;

struct Cluster {
  std::vector<int> members;
  double link_kbps = 0;  // between the cluster and the rest, the slower of both directions
};

struct TwoLevelShares {
  std::vector<double> across;  // by cluster: its part of every rail; sum 1
  std::vector<double> inside;  // by node: its part of the buffer in its own cluster; sum 1 in each
};

// The shares with the least time for the busiest node or cluster link, `direct` at both levels:
//   node i of cluster r (m_r members, R clusters):  S (1 + w_i (m_r - 1 + (R-2) v_r)) each way
//   link of cluster r:                              S (1 + (R-2) v_r) each way
TwoLevelShares optimal_shares(const FabricView& view, const std::vector<Cluster>& clusters);

// All alike, for patterns whose load the shares do not control.
TwoLevelShares even_shares(const FabricView& view, const std::vector<Cluster>& clusters);

// Members and clusters in the given order; `shares.across` follows the order of `clusters`.
GroupPlan two_level_plan(const std::vector<Cluster>& clusters, const TwoLevelShares& shares,
                         Pattern inside, Pattern across);

}  // namespace riffle
