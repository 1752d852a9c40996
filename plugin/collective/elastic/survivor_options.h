// SurvivorOptions: what a job wants where nodes are lost (survivors.h).
#pragma once

#include <cstdint>

#include "plugin/collective/elastic/regroup.h"

namespace riffle {

struct SurvivorOptions {
  bool is_on = false;
  bool rescales = true;  // sums of floating-point numbers, by all / survivors
  std::uint64_t patience_ns = Regroup::Options().patience_ns;
  // Tests only, to see that they would notice: operations are over as soon as the root has them;
  // residuals do not come back; a node finishes averages that were under way if it had them.
  bool plants_early_end = false, plants_spent_residual = false, plants_own_average = false;
};

}  // namespace riffle
