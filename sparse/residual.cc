#include "sparse/residual.h"

#include <algorithm>

namespace riffle::sparse {

ChunkState::ChunkState(const Layout& layout, int position, ResidualPolicy policy)
    : residual(layout.shape().elements),
      thresholds(static_cast<std::size_t>(layout.team_size())),
      offer(layout.budget_of(layout.local_rank_of(position)), layout.teams()),
      offer_as_new_(offer) {
  if (policy == ResidualPolicy::kEf21) {
    momentum.resize(residual.size());
    delivered.resize(residual.size());
  }
}

void ChunkState::reset() {
  std::ranges::fill(residual, 0.0F);
  std::ranges::fill(momentum, 0.0F);
  std::ranges::fill(delivered, 0.0F);
  std::ranges::fill(thresholds, Threshold{});
  has_momentum = false;
  offer = offer_as_new_;
}

}  // namespace riffle::sparse
