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

// Hops of one shard each way.
int depth(const Group& g) {
  return exchange_of(g.pattern).depth(static_cast<int>(g.members.size()));
}

// Calls f(from, to, part of the buffer) for every pair that exchanges in the phase.
template <class F>
void for_each_pair(const Group& g, Phase phase, int partners, F f) {
  const std::size_t p = g.members.size();
  if (depth(g) == 1 && partners != kAll && static_cast<int>(p) - 1 > partners && is_even(g)) {
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
  for (const PairTraffic& t : exchange_of(g.pattern).traffic(g.cuts, phase)) {
    f(g.members[t.from], g.members[t.to], static_cast<double>(t.units) / kShareUnits);
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

Stage stage(const Level& level, Phase phase, double bytes, int partners) {
  Stage s;
  for (const Group& g : level.groups) {
    const int hops = depth(g);
    s.repeats = std::max(s.repeats, hops);
    for_each_pair(g, phase, partners, [&](int from, int to, double size) {
      s.flows.push_back({from, to, size * bytes / hops});
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
        for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
          for_each_pair(g, phase, partners, [&](int from, int to, double size) {
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
  for (const Level& level : plan.levels)
    all.push_back(stage(level, Phase::kReduceScatter, bytes, partners));
  for (auto level = plan.levels.rbegin(); level != plan.levels.rend(); ++level) {
    all.push_back(stage(*level, Phase::kAllGather, bytes, partners));
  }
  return all;
}

}  // namespace riffle::scale
