// Nested groups of equal size: grids and halving-doubling.
#pragma once

#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle {

// One dimension of a grid: as many members per group as there are shares.
struct Dimension {
  std::vector<double> shares;  // by digit
};
Dimension even_dimension(int members);

// Adds one level per dimension to the plan. Node order[x] has the digits of x in mixed radix, the
// first dimension counting fastest; level k puts together the nodes that differ in digit k only.
// They hold the same span, which depends on their digits below k, and share it out as the dimension
// says. The product of the dimensions is the size of the order.
void add_nested_levels(const std::vector<int>& order, const std::vector<Dimension>& dimensions,
                       GroupPlan& plan);

}  // namespace riffle
