#include "bench/harness/tiled_data.h"

#include <algorithm>
#include <cstring>

#include "lab/nccl_host/work/pattern.h"

namespace riffle::bench {
namespace {
constexpr std::size_t kTile = 65537;  // elements
}

TiledData::TiledData(DataType type, host::Op op, int rank, int ranks, unsigned salt)
    : type_(type), op_(op), rank_(rank), ranks_(ranks), salt_(salt) {
  const std::size_t bytes = kTile * size_of(type);
  mine_.resize(bytes);
  result_.resize(bytes);
  host::fill_pattern(mine_.data(), kTile, type, rank, salt);
  host::fill_pattern(result_.data(), kTile, type, 0, salt);
  std::vector<std::byte> next(bytes);
  for (int r = 1; r < ranks; ++r) {
    host::fill_pattern(next.data(), kTile, type, r, salt);
    const void* sources[] = {result_.data(), next.data()};
    void* targets[] = {result_.data()};
    host::reduce_copy(targets, sources, kTile, type, host::network_op(op));
  }
}

void TiledData::fill(void* data, std::size_t count) const {
  auto* to = static_cast<std::byte*>(data);
  for (std::size_t left = count * size_of(type_); left > 0;) {
    const std::size_t n = std::min(left, mine_.size());
    std::memcpy(to, mine_.data(), n);
    to += n;
    left -= n;
  }
}

std::size_t TiledData::wrong(const void* data, std::size_t count) const {
  const auto* from = static_cast<const std::byte*>(data);
  std::size_t wrong = 0;
  for (std::size_t left = count; left > 0;) {
    const std::size_t n = std::min(left, kTile);
    // Unequal bytes may still be right: float8 sums depend on their order.
    if (std::memcmp(from, result_.data(), n * size_of(type_)) != 0) {
      wrong += host::count_wrong(from, n, type_, op_, ranks_, salt_);
    }
    from += n * size_of(type_);
    left -= n;
  }
  return wrong;
}

std::size_t TiledData::wrong_after_loss(const void* data, std::size_t count) const {
  if (type_ != DataType::kFloat32 || op_ != host::Op::kSum) return wrong(data, count);
  const auto* got = static_cast<const float*>(data);
  const auto* all = reinterpret_cast<const float*>(result_.data());
  const float factor = static_cast<float>(static_cast<double>(ranks_) / (ranks_ - 1));
  std::size_t least = count;
  std::vector<float> lost(kTile);
  for (int r = 0; r < ranks_; ++r) {
    if (r == rank_) continue;
    host::fill_pattern(lost.data(), kTile, type_, r, salt_);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float sum = all[i % kTile];
      wrong += got[i] != sum && got[i] != (sum - lost[i % kTile]) * factor;
    }
    least = std::min(least, wrong);
  }
  return least;
}

}  // namespace riffle::bench
