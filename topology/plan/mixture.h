// Mixture: how racks of uneven nodes and uplinks share the work of one all-reduce so that no link
// is busier than the bound allows, for as much of that as steady state is about.
//
// Strategy (A, c): the racks in A stay apart, every other rack reduces inside first; then what is
// left of every unit, K partial sums, meets at one node of rack c, its centre. With k_r = 1, or m_r
// (its members) if r is in A, a unit costs
//   the uplink of rack r:           k_r             each way;  of rack c:  K - k_c
//   the nodes of rack r together:   2 m_r - k_r     each way;  of rack c:  2 (m_c - 1) + K - k_c
// where every node moves at least 1 and the rest goes to the owners of the rack's sums, so it may
// be shared out over the nodes of the rack at will. A mixture gives every strategy a part of the
// buffer. The best one is a linear program over all pairs (A, c): it is solved by column
// generation, since for given prices of the links the best A for each c is found rack by rack. Its
// optimum is the bound of the architecture (docs/algorithms.md, "Why the bound is reached").
//
// The idea to pack several trees of different shape fractionally, and that this reaches the cuts'
// bound, is ForestColl's (Zhao et al., arXiv 2402.06787); strategies of two levels suffice here,
// because a fabric has two.
#pragma once

#include <vector>

#include "topology/plan/fabric_view.h"
#include "topology/plan/group_plan.h"
#include "topology/plan/lane_order.h"

namespace riffle {

struct MixtureSegment {
  double part = 0;             // of the buffer; sum 1
  std::vector<bool> apart;     // by index in FabricView::racks()
  std::vector<double> centre;  // likewise: part of the segment that meets in the rack; sum 1
};

struct Mixture {
  std::vector<MixtureSegment> segments;
  std::vector<double> inside;  // by node: its part of what its rack's owners do; sum 1 per rack
};

// Racks are told apart by size, rate and uplink; with more kinds of racks than this the program
// would take seconds.
inline constexpr std::size_t kMaxRackKinds = 96;

// The mixture that loads the busiest link least. Empty if there are more than kMaxRackKinds.
Mixture best_mixture(const FabricView& view);

// Two levels: inside the racks, then for every part of the buffer one group with all that hold a
// sum of it, owned by the centre's node.
GroupPlan mixed_plan(const FabricView& view, const LaneOrder& order, const Mixture& mixture);

// Upper limit of the members of all its groups, to tell plans that would be too large.
std::size_t most_members(const FabricView& view, const Mixture& mixture);

}  // namespace riffle
