#include "bench/scale/flows.h"

#include <algorithm>
#include <cmath>

namespace riffle::scale {
namespace {

double part(Share units) { return static_cast<double>(units) / kShareUnits; }

double shard(const Group& g, std::size_t j) { return part(g.cuts[j + 1] - g.cuts[j]); }

bool is_even(const Group& g) {
  const double mean = part(g.end() - g.begin()) / static_cast<double>(g.members.size());
  for (std::size_t j = 0; j < g.members.size(); ++j) {
    if (std::abs(shard(g, j) - mean) > 1e-4 * mean) return false;
  }
  return true;
}

// Distances in the circle of p members for a few flows in the place of p - 1.
std::vector<std::size_t> distances(std::size_t p, int partners) {
  std::vector<std::size_t> list;
  for (std::size_t d = 1; d < p && static_cast<int>(list.size()) < partners; d *= 2) {
    list.push_back(d);
  }
  return list;
}

// Calls f(from, to, part of the buffer) for every pair that exchanges in the reduce-scatter;
// the all-gather of a direct group is the same turned round, that of a ring starts one shard
// further.
template <class F>
void for_each_pair(const Group& g, bool gather, int partners, F f) {
  const std::size_t p = g.members.size();
  if (g.pattern == Pattern::kDirect && partners != kAll && static_cast<int>(p) - 1 > partners &&
      is_even(g)) {
    const std::vector<std::size_t> ds = distances(p, partners);
    const double all =
        part(g.end() - g.begin()) * static_cast<double>(p - 1) / static_cast<double>(p);
    for (std::size_t i = 0; i < p; ++i) {
      for (const std::size_t d : ds) {
        f(g.members[i], g.members[(i + d) % p], all / static_cast<double>(ds.size()));
      }
    }
    return;
  }
  if (g.pattern == Pattern::kRing) {
    for (std::size_t i = 0; i < p; ++i) {
      const std::size_t next = (i + 1) % p;
      f(g.members[i], g.members[next], part(g.end() - g.begin()) - shard(g, gather ? next : i));
    }
    return;
  }
  for (std::size_t j = 0; j < p; ++j) {
    const double size = shard(g, j);
    if (size == 0) continue;
    for (std::size_t i = 0; i < p; ++i) {
      if (i == j) continue;
      if (gather) {
        f(g.members[j], g.members[i], size);
      } else {
        f(g.members[i], g.members[j], size);
      }
    }
  }
}

// One flow per pair; the same pair may have met in several groups and lanes.
void merge(Flows& flows) {
  std::sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
  std::size_t kept = 0;
  for (const Flow& f : flows) {
    if (kept > 0 && flows[kept - 1].from == f.from && flows[kept - 1].to == f.to) {
      flows[kept - 1].bytes += f.bytes;
    } else {
      flows[kept++] = f;
    }
  }
  flows.resize(kept);
}

Stage stage(const Level& level, bool gather, double bytes, int partners) {
  Stage s;
  for (const Group& g : level.groups) {
    if (g.pattern == Pattern::kRing) {
      s.repeats = std::max(s.repeats, static_cast<int>(g.members.size()) - 1);
    }
  }
  for (const Group& g : level.groups) {
    const int steps = g.pattern == Pattern::kRing ? static_cast<int>(g.members.size()) - 1 : 1;
    for_each_pair(g, gather, partners, [&](int from, int to, double size) {
      s.flows.push_back({from, to, size * bytes / steps});
    });
  }
  merge(s.flows);
  return s;
}

}  // namespace

Flows all_flows(const PlanSet& plans, double bytes, int partners) {
  Flows flows;
  const double per_lane = bytes / static_cast<double>(plans.lanes.size());
  for (const GroupPlan& plan : plans.lanes) {
    for (const Level& level : plan.levels) {
      for (const Group& g : level.groups) {
        for (const bool gather : {false, true}) {
          for_each_pair(g, gather, partners, [&](int from, int to, double size) {
            flows.push_back({from, to, size * per_lane});
          });
        }
      }
    }
    merge(flows);
  }
  return flows;
}

std::vector<Stage> stages(const GroupPlan& plan, double bytes, int partners) {
  std::vector<Stage> all;
  for (const Level& level : plan.levels) all.push_back(stage(level, false, bytes, partners));
  for (auto level = plan.levels.rbegin(); level != plan.levels.rend(); ++level) {
    all.push_back(stage(*level, true, bytes, partners));
  }
  return all;
}

}  // namespace riffle::scale
