// Cycle: the partitions that one lane runs in a period, as lists of nodes, and how a table is made
// of them. What schedule families propose (families.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/plan/fabric_view.h"
#include "topology/plan/schedules/schedules.h"

namespace riffle {

using NodeGroups = std::vector<std::vector<int>>;  // groups of one node may be in it or left out

struct Cycle {
  std::string name;
  std::vector<NodeGroups> steps;
  // Lane l runs step (t + l) mod steps: with as many lanes as steps every step of the table loads
  // the links alike.
  int lanes = 1;
  std::vector<int> dimensions;  // of a full grid: exact every period; empty: none

  bool is_grid() const { return !dimensions.empty(); }
};

// The groups as a partial plan. Cuts follow the members' rates; a group that spans racks is owned
// by the rack with most members, since all else would cross uplinks more often.
GroupPlan partition_of(const FabricView& view, const NodeGroups& groups);

// The cycle with alike nodes (same rack, same rates) in each other's places: it costs and mixes the
// same, but other nodes meet.
Cycle relabelled(const FabricView& view, const Cycle& cycle, std::uint64_t seed);

ScheduleTable table_of(const FabricView& view, const Cycle& cycle);

}  // namespace riffle
