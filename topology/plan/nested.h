// Nested groups of equal size: the grid and halving-doubling.
#pragma once

#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle {

// Adds one level per factor to the plan. Node order[x] has the digits of x in mixed radix, the
// first factor counting fastest; level k puts together the nodes that differ in digit k only. They
// hold the same span, which depends on their digits below k, and share it out evenly. The product
// of the factors is the size of the order.
void add_nested_levels(const std::vector<int>& order, const std::vector<int>& factors,
                       GroupPlan& plan);

}  // namespace riffle
