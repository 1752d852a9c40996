#include "topology/plan/nested.h"

#include "topology/plan/shares.h"

namespace riffle {

Dimension even_dimension(int members) { return {even_weights(static_cast<std::size_t>(members))}; }

void add_nested_levels(const std::vector<int>& order, const std::vector<Dimension>& dimensions,
                       GroupPlan& plan) {
  const int nodes = static_cast<int>(order.size());
  std::vector<Share> begin(nodes, 0);
  std::vector<Share> end(nodes, kShareUnits);
  int stride = 1;
  for (const Dimension& dimension : dimensions) {
    const int factor = static_cast<int>(dimension.shares.size());
    Level level;
    for (int x = 0; x < nodes; ++x) {
      if (x / stride % factor != 0 || begin[x] == end[x]) continue;
      Group group{Pattern::kDirect, {}, cuts_of(dimension.shares, begin[x], end[x])};
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
  RIFFLE_CHECK(stride == nodes, "the dimensions must make up all nodes");
}

}  // namespace riffle
