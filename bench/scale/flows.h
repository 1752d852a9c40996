// Flows: what a group plan sends between which nodes, for a network simulator that knows nothing of
// plans. Pure counting of what the patterns send (docs/algorithms.md).
#pragma once

#include <cstdint>
#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle::scale {

struct Flow {
  int from = 0, to = 0;
  double bytes = 0;
};
using Flows = std::vector<Flow>;

// How many others a member of a group sends to. kAll is the plan's own pattern. Fewer stand for all
// of them in even direct groups: the members that follow at 1, 2, 4, ... places get what all
// others would, so that every node sends and receives as much as before, with far fewer flows.
// Links between racks carry as much as before only if they are shared by what goes to any other
// rack, as in fat trees and stars; a dragonfly has a link per pair.
inline constexpr int kAll = 0;

// Everything that an all-reduce of `bytes` bytes sends, over all lanes, levels and both phases: one
// flow per ordered pair of nodes.
Flows all_flows(const PlanSet& plans, double bytes, int partners = kAll);

// One chunk of `bytes` bytes on one lane, as stages that wait for each other: the levels downwards,
// then upwards. A stage whose groups take several hops repeats its flows, a part of them each time,
// as a pipeline of fragments does.
struct Stage {
  Flows flows;
  int repeats = 1;
};
std::vector<Stage> stages(const GroupPlan& plan, double bytes, int partners = kAll);

}  // namespace riffle::scale
