// One way to run an all-reduce on a fabric. Each family of candidates has a file in this folder; it
// proposes blueprints, from which the planner builds one plan per lane.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "topology/plan/fabric_view.h"
#include "topology/plan/group_plan.h"
#include "topology/plan/lane_order.h"

namespace riffle {

struct Blueprint {
  std::string name;       // family and variant, e.g. "grid 8x4"
  bool shuffles = false;  // lanes in different orders are of use
  std::function<GroupPlan(const LaneOrder&)> build;
  // Chosen only if its time is less than all others' by this factor.
  double must_gain = 1;
};

// Families in rising order of complexity: on a tie the earlier one is chosen. A family returns
// nothing where it does not apply. The view must outlive the blueprints.
struct Family {
  const char* name;  // what RIFFLE_PLAN accepts
  std::vector<Blueprint> (*propose)(const FabricView& view);
};

std::vector<Blueprint> propose_direct(const FabricView& view);
std::vector<Blueprint> propose_ring(const FabricView& view);
std::vector<Blueprint> propose_racks(const FabricView& view);
std::vector<Blueprint> propose_halving_doubling(const FabricView& view);
std::vector<Blueprint> propose_grid(const FabricView& view);
std::vector<Blueprint> propose_tree(const FabricView& view);
std::vector<Blueprint> propose_double_tree(const FabricView& view);

const std::vector<Family>& families();

}  // namespace riffle
