// What follows from a plan for the engine of one node: grain, window, frames. Pure, any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "plugin/collective/engine/program.h"
#include "topology/plan/group_plan.h"

namespace riffle {

// Whether the owner of an element also decides in which order it is summed, in any lane of any
// node.
bool sums_depend_on_owner(const std::vector<GroupPlan>& lanes);

// The grain of small chunks. Slots are made for the shards of full chunks; half of the smallest
// one, and half of a full chunk, keep a small chunk's shards below them. Sums that depend on who
// owns what stay as they are.
std::size_t small_grain(const std::vector<GroupPlan>& lanes, std::size_t chunk_bytes);

// The window of one node: `most_bytes` for the node that sends most, less in proportion for
// others: in a plan that uses every link up that is about the nodes' rates. The less their loads
// differ, the less there is to gain by a window, and the wider it is; SendWindow::kNoLimit if all
// are alike.
std::size_t send_window_bytes(const PlanSet& plans, int rank, std::size_t most_bytes);

// The frames that one node sends for one chunk, at most.
std::size_t most_frames(const Program& program, std::size_t chunk_bytes,
                        std::size_t fragment_bytes);

}  // namespace riffle
