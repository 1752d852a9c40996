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

// Both ways of an all-reduce: partial sums of their shards go out, then the sums of ours. What
// comes back from the next one of a ring has no weight of its own: both ends of a link count alike.
void add_group(const Group& g, std::size_t me, std::vector<std::uint64_t>* units) {
  const std::size_t members = g.members.size();
  const auto add = [&](std::size_t other, std::uint64_t extent) {
    (*units)[g.members[other]] += extent;
  };
  if (g.pattern == Pattern::kRing) {
    const std::size_t next = (me + 1) % members, last = (me + members - 1) % members;
    const std::uint64_t twice = 2 * std::uint64_t{g.end() - g.begin()};
    add(next, twice - shard(g, me) - shard(g, next));
    if (last != next) add(last, twice - shard(g, me) - shard(g, last));
    return;
  }
  for (std::size_t j = 0; j < members; ++j) {
    if (j != me) add(j, shard(g, j) + shard(g, me));
  }
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
          add_group(g, static_cast<std::size_t>(me - g.members.begin()), &units);
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
