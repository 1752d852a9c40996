#include "bench/harness/gradient_data.h"

#include <algorithm>
#include <random>

namespace riffle::bench {
namespace {

constexpr std::size_t kGradientTile = 1'000'003;  // elements; a prime
constexpr std::size_t kShift = 271'828;           // from call to call

}  // namespace

GradientData::GradientData(int rank) : tile_(kGradientTile) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<float> normal;
  for (float& x : tile_) {
    const float n = normal(random);
    x = n * n * n;
  }
}

void GradientData::fill(float* data, std::size_t count) {
  std::size_t from = at_;
  at_ = (at_ + kShift) % kGradientTile;
  while (count > 0) {
    const std::size_t n = std::min(count, kGradientTile - from);
    std::copy_n(tile_.data() + from, n, data);
    data += n;
    count -= n;
    from = 0;
  }
}

}  // namespace riffle::bench
