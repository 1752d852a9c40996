#include "test/modes/job_plans.h"

#include <algorithm>
#include <numeric>

namespace riffle::testing {
namespace {

// In equal shares.
Group group(const std::vector<int>& members) {
  Group g;
  g.pattern = Pattern::kDirect;
  g.members = members;
  for (std::size_t i = 0; i <= members.size(); ++i) {
    g.cuts.push_back(static_cast<Share>(kShareUnits * i / members.size()));
  }
  return g;
}

// Two partitions in turn, the second lane one step ahead.
RelaxedPlans in_turn(int nodes, const std::vector<Group>& first, const std::vector<Group>& second) {
  RelaxedPlans r;
  r.steps = r.lanes = 2;
  r.partitions = {{nodes, {{first}}}, {nodes, {{second}}}};
  r.table = {0, 1, 1, 0};
  return r;
}

}  // namespace

RelaxedPlans grid_plans() {
  return in_turn(8, {group({0, 2, 4, 6}), group({1, 3, 5, 7})},
                 {group({0, 1}), group({2, 3}), group({4, 5}), group({6, 7})});
}

RelaxedPlans half_plans(int nodes) {
  std::vector<int> all(nodes), low, high, even, odd;
  std::iota(all.begin(), all.end(), 0);
  if (nodes < 2) return {};
  if (nodes < 4) {
    RelaxedPlans r;
    r.steps = r.lanes = 2;
    r.partitions = {{nodes, {{{group(all)}}}}};
    r.table = {0, 0, 0, 0};
    return r;
  }
  for (const int i : all) {
    (i < nodes / 2 ? low : high).push_back(i);
    (i % 2 == 0 ? even : odd).push_back(i);
  }
  return in_turn(nodes, {group(low), group(high)}, {group(even), group(odd)});
}

std::vector<int> group_of(const RelaxedPlans& plans, std::uint64_t step, std::uint64_t lane,
                          int r) {
  for (const Group& g : plans.partitions[plans.index(step, lane)].levels[0].groups) {
    if (std::ranges::find(g.members, r) != g.members.end()) return g.members;
  }
  return {r};
}

SparseOrder sparse_order(int nodes, std::uint64_t teams, bool is_recursive, std::size_t calls) {
  SparseOrder order;
  order.teams = teams;
  order.is_recursive = is_recursive;
  for (int i = 0; i < nodes; ++i) {
    order.node_at.push_back(static_cast<std::uint64_t>(nodes - 1 - i));
  }
  order.is_sparse.assign(calls, 1);
  return order;
}

}  // namespace riffle::testing
