// What the coordinator of a loss orders: which operations are over, and a plan for the network that
// is left.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plugin/collective/base/background.h"
#include "plugin/collective/elastic/recovery_messages.h"
#include "topology/plan/planner.h"

namespace riffle {

struct RecoveryPlanning {
  PlanBasis basis;  // of the nodes that are left
  PlanOptions options;
  std::uint64_t bytes = 0;  // the size that plans are compared at
  std::function<RelaxedPlans(const Fabric&, bool is_told)> relaxed_plans;  // null: there are none
};

// `planned` hears the encoded RecoveryOrder, or what is wrong with an account; once, now or later.
// `background` may be null, then planning happens in place.
void plan_recovery(const std::vector<std::vector<std::uint8_t>>& accounts,
                   RecoveryPlanning planning, Background* background,
                   std::function<void(Result<std::vector<std::uint8_t>>)> planned);

}  // namespace riffle
