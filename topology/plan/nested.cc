#include "topology/plan/nested.h"

#include "topology/plan/shares.h"

namespace riffle {

void add_nested_levels(const std::vector<int>& order, const std::vector<int>& factors,
                       GroupPlan& plan) {
  const int nodes = static_cast<int>(order.size());
  std::vector<Share> begin(nodes, 0);
  std::vector<Share> end(nodes, kShareUnits);
  int stride = 1;
  for (int factor : factors) {
    Level level;
    const auto weights = even_weights(factor);
    for (int x = 0; x < nodes; ++x) {
      if (x / stride % factor != 0) continue;
      Group group{Pattern::kDirect, {}, cuts_of(weights, begin[x], end[x])};
      for (int j = 0; j < factor; ++j) {
        const int y = x + j * stride;
        group.members.push_back(order[y]);
        begin[y] = group.cuts[j];
        end[y] = group.cuts[j + 1];
      }
      level.groups.push_back(std::move(group));
    }
    plan.levels.push_back(std::move(level));
    stride *= factor;
  }
  RIFFLE_CHECK(stride == nodes, "the factors must make up all nodes");
}

}  // namespace riffle
