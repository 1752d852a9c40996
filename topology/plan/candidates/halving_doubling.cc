#include <bit>

#include "topology/plan/candidate.h"
#include "topology/plan/nested.h"

namespace riffle {

// log2 N levels of pairs. If N is no power of two, the extra nodes hand their contribution to a
// neighbour first and get the sum from it in the end (Rabenseifner).
std::vector<Blueprint> propose_halving_doubling(const FabricView& view) {
  if (view.size() < 3) return {};  // a pair is `direct`
  const auto build = [](const LaneOrder& order) {
    const std::vector<int> all = order.flat();
    const std::size_t power = std::bit_floor(all.size());
    const std::size_t extras = all.size() - power;
    GroupPlan plan{static_cast<int>(all.size()), {}};
    std::vector<int> rest;
    Level fold;
    for (std::size_t i = 0; i < all.size(); ++i) {
      rest.push_back(all[i]);
      if (i >= 2 * extras) continue;
      fold.groups.push_back(
          {Pattern::kDirect, {all[i], all[i + 1]}, {0, kShareUnits, kShareUnits}});
      ++i;
    }
    if (extras > 0) plan.levels.push_back(std::move(fold));
    add_nested_levels(rest, std::vector<Dimension>(std::bit_width(power) - 1, even_dimension(2)),
                      plan);
    return plan;
  };
  return {{"halving-doubling", true, build}};
}

}  // namespace riffle
