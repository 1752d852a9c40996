#include "topology/plan/candidates/candidate.h"

namespace riffle {

// A binomial tree as levels of pairs whose second member owns nothing. Every lane has another root,
// so that the roots' load spreads when there are several chunks.
std::vector<Blueprint> propose_tree(const FabricView& view) {
  if (view.size() < 3) return {};  // a pair is `direct`
  const auto build = [](const LaneOrder& order) {
    const std::vector<int> all = order.flat();
    GroupPlan plan{static_cast<int>(all.size()), {}};
    for (std::size_t stride = 1; stride < all.size(); stride *= 2) {
      Level level;
      for (std::size_t x = 0; x + stride < all.size(); x += 2 * stride) {
        level.groups.push_back(
            {Pattern::kDirect, {all[x], all[x + stride]}, {0, kShareUnits, kShareUnits}});
      }
      plan.levels.push_back(std::move(level));
    }
    return plan;
  };
  return {{"tree", true, build}};
}

}  // namespace riffle
