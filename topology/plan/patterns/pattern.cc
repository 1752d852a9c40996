#include "topology/plan/patterns/pattern.h"

#include "topology/base/check.h"

namespace riffle {

#define RIFFLE_PATTERN(name, function, code) const GroupExchange& function();
#include "topology/plan/patterns/patterns.def"
#undef RIFFLE_PATTERN

const GroupExchange* find_exchange(Pattern pattern) {
  switch (pattern) {
#define RIFFLE_PATTERN(name, function, code) \
  case Pattern::name:                        \
    return &function();
#include "topology/plan/patterns/patterns.def"
#undef RIFFLE_PATTERN
  }
  return nullptr;
}

const GroupExchange& exchange_of(Pattern pattern) {
  const GroupExchange* exchange = find_exchange(pattern);
  RIFFLE_CHECK(exchange != nullptr, "a pattern that validate() refuses");
  return *exchange;
}

std::vector<PairTraffic> GroupExchange::traffic(std::span<const Share> cuts, Phase phase) const {
  const int size = static_cast<int>(cuts.size()) - 1;
  std::vector<PairTraffic> pairs;
  for (int shard = 0; shard < size; ++shard) {
    const std::uint64_t units = cuts[shard + 1] - cuts[shard];
    if (units == 0) continue;
    for (int member = 0; member < size; ++member) {
      if (member == shard) continue;
      if (phase == Phase::kReduceScatter) {
        pairs.push_back({member, partial_to(size, shard, member), units, 1});
      } else {
        pairs.push_back({sum_from(size, shard, member), member, units, 1});
      }
    }
  }
  return pairs;
}

}  // namespace riffle
