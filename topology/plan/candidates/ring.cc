#include "topology/plan/candidate.h"
#include "topology/plan/shares.h"

namespace riffle {

// One ring, rack after rack, so that it enters and leaves every rack once. Any order of the nodes
// inside the racks loads every link alike.
std::vector<Blueprint> propose_ring(const FabricView& view) {
  const auto build = [&view](const LaneOrder& order) {
    const std::vector<int> members = order.flat();
    return GroupPlan{
        view.size(),
        {{{{Pattern::kRing, members, cuts_of(even_weights(members.size()), 0, kShareUnits)}}}}};
  };
  return {{"ring", false, build}};
}

}  // namespace riffle
