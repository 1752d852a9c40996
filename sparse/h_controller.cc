#include "sparse/h_controller.h"

#include <algorithm>
#include <cstdlib>

namespace riffle::sparse {

HController::HController(std::uint64_t budget, int teams)
    : budget_(static_cast<std::int64_t>(budget)),
      least_(std::min(budget_, std::max<std::int64_t>(1, budget_ / teams))),
      h_(least_),
      step_(std::max<std::int64_t>(1, (budget_ - h_) / 100)) {}

void HController::observe(std::uint64_t union_size) {
  const bool too_many = static_cast<std::int64_t>(union_size) > budget_;
  const bool growing = step_ > 0;
  if (too_many != growing) {  // the right way; twice running, faster
    if (inertia_)
      step_ = std::clamp(2 * step_, -std::max<std::int64_t>(1, budget_),
                         std::max<std::int64_t>(1, budget_));
    inertia_ = !inertia_;
  } else {
    step_ = std::abs(step_) > 1 ? -step_ / 2 : -step_;
    inertia_ = false;
  }
  h_ = std::clamp(h_ + step_, least_, budget_);
}

}  // namespace riffle::sparse
