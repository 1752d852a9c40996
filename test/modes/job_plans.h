// What jobs run their modes over: groups of their nodes, and the order of sparse exchanges.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/collective/base/mode_participant.h"
#include "topology/plan/group_plan.h"

namespace riffle::testing {

// Eight nodes in a 4 x 2 grid: rows and columns in turn, the second lane one step ahead.
RelaxedPlans grid_plans();
// Halves, then every other node, in turn; three nodes or two all together, one: no plans.
RelaxedPlans half_plans(int nodes);
// Whom node r averages with, in this relaxed step and lane.
std::vector<int> group_of(const RelaxedPlans& plans, std::uint64_t step, std::uint64_t lane, int r);
// All calls are sparse. Nodes are not in the order of their ranks.
SparseOrder sparse_order(int nodes, std::uint64_t teams, bool is_recursive, std::size_t calls);

}  // namespace riffle::testing
