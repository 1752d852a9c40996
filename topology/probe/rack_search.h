// Who stands in which rack: the partition of the nodes that explains the rounds best.
//
// Candidates come from hierarchical clustering (average linkage) of the nodes, once by how much of
// their ends' rate pairs reach while the network is loaded, once by how long messages between them
// take; every cut of both trees is a candidate, and so is every hint (rack_hints.h). The best are
// improved node by node and rack by rack under the rack model (rack_model.h). Beyond kDenseNodes,
// where not all pairs meet, flows vote (correlation clustering, clusters.h).
//
// Racks are reported only if they explain clearly more than no racks; otherwise there are none. A
// hint counts for that, but the rounds alone must speak for racks, too.
// Pure and deterministic; effort is bounded.
#pragma once

#include <string>
#include <vector>

#include "topology/probe/rack_hints.h"
#include "topology/probe/rack_model.h"

namespace riffle::probe {

inline constexpr int kDenseNodes = 64;  // up to here all pairs may be probed

struct Racks {
  std::vector<int> rack_of;  // per node; all 0: no racks found
  int count = 1;
  std::vector<Uplink> uplinks;  // payload; empty if count is 1
  // Per rack, 0..0.97 (1: known): of so many such racks this share is right. Of those on which the
  // rounds leave no doubt 96 in 100 were, on emulated networks.
  std::vector<double> confidence;
  std::vector<int> suspected;  // per node: the best guess, also where it is no more than that
  double held_back = 0;        // share of flows that neither end explains
  struct Overruled {
    std::string source;      // of the hint
    std::vector<int> nodes;  // that stand elsewhere
  };
  std::vector<Overruled> overruled;  // hints that the racks found contradict
};

Racks find_racks(const RackModel& model, const std::vector<Observed>& all,
                 const std::vector<RackHint>& hints = {});

// The same for racks that are known: only their uplinks and confidence are found.
Racks known_racks(const RackModel& model, const std::vector<int>& rack_of);

}  // namespace riffle::probe
