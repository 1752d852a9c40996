// The order of nodes in which NCCL's own rings cross racks least. What Riffle's groups do not carry
// (reduce-scatter and all-gather of FSDP and ZeRO, tensor and pipeline groups) runs on rings and
// trees that go by rank, wherever the ranks stand. Pure and deterministic.
//
// Every node of a ring passes on the same number of bytes, so the nodes' own links are as busy in
// any order. The uplink of a rack carries these bytes once for every node of the rack whose
// successor stands elsewhere, and the downlink as often, since a ring enters a rack as often as it
// leaves it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/base/status.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/fabric_view.h"
#include "topology/plan/loads.h"

namespace riffle {

// Rings of `members` nodes each, consecutive ones of `order`, all at once.
struct RingsTime {
  Slowest slowest;    // the busiest link, while every ring all-reduces a buffer of its own
  int crossings = 0;  // edges that lead from one rack to another
};
// A reduce-scatter or an all-gather takes half as long. Precondition: `members` divides the order.
RingsTime rings_time(const FabricView& view, std::span<const int> order, int members,
                     std::uint64_t bytes);

// No order makes such rings faster. For one ring of all nodes best_rank_order() reaches it.
double rings_bound_us(const FabricView& view, int members, std::uint64_t bytes);

// The nodes in the order in which they should get their ranks. In groups of `group`, consecutive
// nodes work together (the stages of a pipeline, say) in a ring of their own, beside the ring of
// all nodes; the number must divide the nodes; 1 is for no groups, as is the number of nodes. Best
// is the order in which the slower of the two, the ring of all nodes or the groups' rings at once,
// is fastest; of equals, that in which both together are; of these, that in which racks' links
// carry least. Nodes keep the order that they have where no other is better.
Result<std::vector<int>> best_rank_order(const FabricView& view, int group = 1);

}  // namespace riffle
