// LaneOrder: the nodes in the order in which one lane puts them onto its groups, rack by rack.
// Lanes differ by a seeded shuffle that never separates the nodes of a rack, so that it moves load
// between rails and owners but none onto an uplink.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/plan/fabric_view.h"

namespace riffle {

struct LaneOrder {
  std::vector<std::vector<int>> racks;  // ranks; racks in this lane's order
  std::vector<int> flat() const;
};

// Lane 0 is the natural order. In lanes 1.. every rack and every node of a rack takes its turn at
// the front (where trees have their root); all else is shuffled. The same seed gives the same
// orders on every machine.
LaneOrder lane_order(const FabricView& view, int lane, std::uint64_t seed);

}  // namespace riffle
