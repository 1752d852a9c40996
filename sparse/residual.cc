#include "sparse/residual.h"

#include <algorithm>

#include "topology/base/check.h"

namespace riffle::sparse {

namespace {

HController offer_of(const Layout& layout, int position) {
  return {layout.budget_of(layout.local_rank_of(position)), layout.teams()};
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
