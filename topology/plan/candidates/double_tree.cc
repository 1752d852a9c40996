#include "topology/plan/candidate.h"
#include "topology/plan/shares.h"

namespace riffle {
namespace {

// As for trees: inner nodes and roots carry different loads.
constexpr double kTreesMustGain = 1.03;

}  // namespace

// One group of all nodes, rack after rack, of which two own half of the buffer each: the roots of
// the two trees, which are the first member and the one that comes first in the second tree.
std::vector<Blueprint> propose_double_tree(const FabricView& view) {
  if (view.size() < 2) return {};
  const auto build = [&view](const LaneOrder& order) {
    const std::vector<int> members = order.flat();
    std::vector<double> weights(members.size(), 0);
    weights.front() = weights[members.size() % 2 == 0 ? members.size() - 1 : 1] = 0.5;
    return GroupPlan{view.size(),
                     {{{{Pattern::kDoubleTree, members, cuts_of(weights, 0, kShareUnits)}}}}};
  };
  return {{"double-tree", false, build, kTreesMustGain}};
}

}  // namespace riffle
