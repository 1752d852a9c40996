#include "sparse/residual.h"

#include <algorithm>

#include "topology/base/check.h"

namespace riffle::sparse {

namespace {

// Where a block may keep all its elements there is nothing to economize: the teams offer all at
// once. A dense sum must not depend on what they have in common.
HController offer_of(const Layout& layout, int position) {
  const int block = layout.local_rank_of(position);
  const std::uint64_t budget = layout.budget_of(block);
  return {budget, budget == layout.size_of(block) ? 1 : layout.teams()};
}

}  // namespace

ChunkState::ChunkState(const Layout& layout, int position, ResidualPolicy policy)
    : residual(layout.shape().elements),
      thresholds(static_cast<std::size_t>(layout.team_size())),
      offer(offer_of(layout, position)),
      offer_as_new_(offer) {
  if (policy == ResidualPolicy::kEf21) {
    momentum.resize(residual.size());
    delivered.resize(residual.size());
  }
}

void ChunkState::move_to(const Layout& layout, int position) {
  RIFFLE_CHECK(layout.shape().elements == residual.size(), "a residual of another chunk");
  thresholds.assign(static_cast<std::size_t>(layout.team_size()), Threshold{});
  offer_as_new_ = offer_of(layout, position);
  offer = offer_as_new_;
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
