// Random but valid group plans, wilder than any the planner makes: mixed-radix grids over permuted
// nodes with uneven shards, empty shards, random patterns, and nodes folded away first; with and
// without other plans for small sums, and relaxed groups, any partition of the nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle::testing {

class RandomPlans {
 public:
  explicit RandomPlans(std::uint64_t seed) : random_(seed) {}

  PlanSet plans(int nodes) {
    PlanSet set;
    set.name = "random";
    const int lanes = 1 + below(3);
    for (int i = 0; i < lanes; ++i) set.lanes.push_back(plan(nodes));
    if (below(2) == 0) {
      set.small.name = "random, small";
      set.small.bytes = 1u << below(13);
      for (int i = 1 + below(3); i > 0; --i) set.small.lanes.push_back(plan(nodes));
    }
    if (below(4) == 0) return set;
    set.relaxed.steps = 1 + below(4);
    set.relaxed.lanes = 1 + below(3);
    const int entries = static_cast<int>(set.relaxed.steps * set.relaxed.lanes);
    const int partitions = 1 + below(entries);
    for (int i = 0; i < partitions; ++i) set.relaxed.partitions.push_back(partial(nodes));
    for (int i = 0; i < entries; ++i) set.relaxed.table.push_back(below(partitions));
    return set;
  }

  GroupPlan partial(int nodes) {
    std::vector<int> order(nodes);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    Level level;
    for (int at = 0; at < nodes;) {
      const int size = 1 + below(nodes - at);
      if (size > 1) {
        Group g;
        g.pattern = pattern();
        g.members.assign(order.begin() + at, order.begin() + at + size);
        g.cuts = random_cuts(0, kShareUnits, size);
        level.groups.push_back(g);
      }
      at += size;
    }
    return {nodes, {level}};
  }

  GroupPlan plan(int nodes) {
    GroupPlan plan;
    plan.nodes = nodes;
    std::vector<int> order(nodes);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    int active = nodes;
    if (nodes > 2 && below(4) == 0) active = nodes - 1 - below(nodes / 2);
    if (active < nodes) plan.levels.push_back(fold(order, active));
    order.resize(active);
    add_grid(order, &plan);
    return plan;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % n); }
  Pattern pattern() { return below(2) == 0 ? Pattern::kDirect : Pattern::kRing; }

  // Nodes from `active` on give their contribution to another node and own nothing.
  Level fold(const std::vector<int>& order, int active) {
    Level level;
    for (int i = active; i < static_cast<int>(order.size()); ++i) {
      Group g;
      g.pattern = pattern();
      g.members = {order[i - active], order[i]};
      g.cuts = {0, kShareUnits, kShareUnits};
      level.groups.push_back(g);
    }
    return level;
  }

  std::vector<Share> random_cuts(Share begin, Share end, int parts) {
    std::vector<Share> cuts = {begin, end};
    const int style = below(3);
    for (int i = 1; i < parts; ++i) {
      const std::uint64_t span = end - begin;
      if (style == 0) {
        cuts.push_back(begin + static_cast<Share>(span * i / parts));
      } else if (style == 1) {
        cuts.push_back(begin + static_cast<Share>(span == 0 ? 0 : random_() % (span + 1)));
      } else {
        cuts.push_back(below(2) == 0 ? begin : end);  // all to one or two members
      }
    }
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }

  void add_grid(const std::vector<int>& order, GroupPlan* plan) {
    const int n = static_cast<int>(order.size());
    std::vector<int> factors;
    for (int rest = n; rest > 1;) {
      std::vector<int> divisors;
      for (int d = 2; d <= rest; ++d) {
        if (rest % d == 0) divisors.push_back(d);
      }
      const int d = divisors[below(static_cast<int>(divisors.size()))];
      factors.push_back(d);
      rest /= d;
    }
    // Position p = digits in mixed radix; nodes of equal earlier digits hold the same span.
    std::vector<std::pair<Share, Share>> held(n, {0, kShareUnits});
    int stride = 1;
    for (const int factor : factors) {
      Level level;
      std::map<std::pair<Share, Share>, std::vector<Share>> cuts_of;
      for (int p = 0; p < n; ++p) {
        if (p / stride % factor != 0) continue;
        const auto span = held[p];
        auto cuts = cuts_of.find(span);
        if (cuts == cuts_of.end()) {
          cuts = cuts_of.emplace(span, random_cuts(span.first, span.second, factor)).first;
        }
        Group g;
        g.pattern = pattern();
        g.cuts = cuts->second;
        for (int i = 0; i < factor; ++i) g.members.push_back(order[p + i * stride]);
        for (int i = 0; i < factor; ++i) held[p + i * stride] = {g.cuts[i], g.cuts[i + 1]};
        if (g.begin() != g.end()) level.groups.push_back(g);
      }
      plan->levels.push_back(level);
      stride *= factor;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace riffle::testing
