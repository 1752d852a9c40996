// Tomography: racks from what a job's own traffic shows. A plan in which every node sends to every
// other (direct) is an experiment on real all-reduces: all flows start together, those within a
// rack are soon through, those that share an uplink stay in the queue. Per pair the bytes delivered
// over the time that something waited for the network say which is which.
//
// What comes out is a guess, one per number of racks: average linkage by those rates (clusters.h),
// uplinks by what went to or came from another rack while anything waited to. Whether a guess is
// worth anything real all-reduces decide (plan_trials.h). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle::probe {

// What one node sent to one peer, and for how long something waited to be sent there.
struct PairTime {
  std::uint64_t bytes = 0, busy_us = 0;
};

// [from][to], payload. Networks with racks that explain them, the most convincing first; nodes are
// those of `known`. Empty if no two kinds of pairs can be told apart.
std::vector<Fabric> racks_from_pairs(const std::vector<std::vector<PairTime>>& pairs,
                                     const Fabric& known);

}  // namespace riffle::probe
