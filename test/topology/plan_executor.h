// A reference executor for tests: walks a plan on small integer vectors, one per node, in the
// plainest way. It knows nothing of messages or order; it shows whether the groups compute an
// all-reduce.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle {

// Empty if every node ends with the sum of all nodes' vectors, else what is wrong.
inline std::string run_on_integers(const GroupPlan& plan, std::uint64_t count,
                                   std::uint64_t grain) {
  std::vector<std::vector<std::int64_t>> data(plan.nodes, std::vector<std::int64_t>(count));
  std::vector<std::int64_t> expected(count, 0);
  for (int n = 0; n < plan.nodes; ++n) {
    for (std::uint64_t e = 0; e < count; ++e) {
      data[n][e] = (n + 1) * 1000003LL + static_cast<std::int64_t>(e) * (n * n + 7);
      expected[e] += data[n][e];
    }
  }
  const auto at = [&](Share u) { return element_of(u, count, grain); };
  for (const Level& level : plan.levels) {
    for (const Group& g : level.groups) {
      for (std::size_t j = 0; j < g.members.size(); ++j) {
        for (std::uint64_t e = at(g.cuts[j]); e < at(g.cuts[j + 1]); ++e) {
          std::int64_t sum = 0;
          for (int m : g.members) {
            sum += data[m][e];
            data[m][e] = -1;  // whoever uses a partial sum twice gets a wrong result
          }
          data[g.members[j]][e] = sum;
        }
      }
    }
  }
  for (auto level = plan.levels.rbegin(); level != plan.levels.rend(); ++level) {
    for (const Group& g : level->groups) {
      for (std::size_t j = 0; j < g.members.size(); ++j) {
        for (std::uint64_t e = at(g.cuts[j]); e < at(g.cuts[j + 1]); ++e) {
          for (int m : g.members) data[m][e] = data[g.members[j]][e];
        }
      }
    }
  }
  for (int n = 0; n < plan.nodes; ++n) {
    for (std::uint64_t e = 0; e < count; ++e) {
      if (data[n][e] != expected[e]) {
        return "node " + std::to_string(n) + ", element " + std::to_string(e) + ": " +
               std::to_string(data[n][e]) + " instead of " + std::to_string(expected[e]);
      }
    }
  }
  return {};
}

}  // namespace riffle
