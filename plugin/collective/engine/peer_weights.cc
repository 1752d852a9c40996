#include "plugin/collective/engine/peer_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

std::uint64_t shard(const Group& g, std::size_t member) {
  return g.cuts[member + 1] - g.cuts[member];
}

// Of one level, or of groups alike.
bool is_even(const GroupPlan& plan) {
  if (plan.levels.size() < 2) return true;
  for (const Level& level : plan.levels) {
    std::uint64_t least = kShareUnits, most = 0;
    for (const Group& g : level.groups) {
      if (g.members.size() != level.groups[0].members.size()) return false;
      for (std::size_t j = 0; j < g.members.size(); ++j) {
        least = std::min(least, shard(g, j));
        most = std::max(most, shard(g, j));
      }
    }
    if (10 * most > 11 * least) return false;
  }
  return true;
}

// Both ways of an all-reduce: partial sums of shards on the way to their owners, then the sums.
// Where a pair sends more one way than the other, both ends count that alike.
void add_group(const Group& g, int me, std::vector<std::uint64_t>* units) {
  const GroupExchange& exchange = exchange_of(g.pattern);
  const int members = static_cast<int>(g.members.size());
  std::vector<std::uint64_t> out(g.members.size()), in(g.members.size());
  for (int j = 0; j < members; ++j) {
    const std::uint64_t size = shard(g, j);
    if (size == 0) continue;
    for (const int m : exchange.partials_from(members, j, me)) in[m] += size;
    for (const int m : exchange.sum_to(members, j, me)) out[m] += size;
    if (j == me) continue;
    out[exchange.partial_to(members, j, me)] += size;
    in[exchange.sum_from(members, j, me)] += size;
  }
  for (int m = 0; m < members; ++m) (*units)[g.members[m]] += std::max(out[m], in[m]);
}

}  // namespace

std::vector<int> peer_weights(const PlanSet& plans, int rank) {
  if (!plans.relaxed.is_empty() || std::all_of(plans.lanes.begin(), plans.lanes.end(), is_even)) {
    return {};
  }
  std::vector<std::uint64_t> units(plans.lanes[0].nodes);
  for (const GroupPlan& plan : plans.lanes) {
    for (const Level& level : plan.levels) {
      for (const Group& g : level.groups) {
        const auto me = std::find(g.members.begin(), g.members.end(), rank);
        if (me != g.members.end()) {
          add_group(g, static_cast<int>(me - g.members.begin()), &units);
        }
      }
    }
  }
  const double whole = static_cast<double>(plans.lanes.size()) * kShareUnits;
  std::vector<int> weights;
  for (const std::uint64_t u : units) {
    const double weight = kMostWeight * std::pow(static_cast<double>(u) / whole, kEvenness);
    weights.push_back(std::clamp(static_cast<int>(std::lround(weight)), 1, kMostWeight));
  }
  return weights;
}

}  // namespace riffle
