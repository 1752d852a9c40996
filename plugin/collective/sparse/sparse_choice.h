// Whether and how the sparse mode runs: node 0's choice, by the same model of the network that
// chose the exact plan, and by what this machine was measured to do.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/collective/base/machine_speed.h"
#include "plugin/collective/base/mode_participant.h"
#include "plugin/collective/base/sync_mode.h"
#include "plugin/identity/layout.h"
#include "sparse/predict.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/group_plan.h"

namespace riffle {

struct SparseMachine {
  MachineSpeed dense;
  double exchange_mbps = 0;  // sparse/predict.h
};

// Teams, places, and which calls are sparse: all large ones, or with is_auto those of the buckets
// for which less time is predicted than for the exact plan. An error where that are none. Pure.
Result<SparseOrder> choose_sparse(const Fabric& fabric, const PlanSet& exact,
                                  const std::vector<Layout::Piece>& pieces,
                                  const SyncSettings& settings, std::uint64_t chunk_elements,
                                  const SparseMachine& machine);

}  // namespace riffle
