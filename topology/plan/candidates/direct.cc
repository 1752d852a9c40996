#include "topology/plan/candidates/candidate.h"
#include "topology/plan/shares.h"

namespace riffle {

// One group of everybody, shares after the nodes' rates.
std::vector<Blueprint> propose_direct(const FabricView& view) {
  const auto build = [&view](const LaneOrder& order) {
    const std::vector<int> members = order.flat();
    std::vector<double> rates;
    for (int n : members) rates.push_back(view.rate_kbps(n));
    return GroupPlan{
        view.size(),
        {{{{Pattern::kDirect, members, cuts_of(direct_weights(rates), 0, kShareUnits)}}}}};
  };
  return {{"direct", false, build}};
}

}  // namespace riffle
