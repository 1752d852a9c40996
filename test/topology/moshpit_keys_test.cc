// topology/plan/schedules/moshpit_keys.h: rounds of averaging in groups of equal keys reach the
// mean of all, also where nodes are missing.
#include "topology/plan/schedules/moshpit_keys.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "topology/base/seeded_random.h"

namespace riffle::moshpit_keys_test {
namespace {

// Rounds of the key protocol on values, nodes that fail a round keeping what they have.
struct Averaging {
  std::vector<double> values;

  explicit Averaging(int nodes) {
    for (int n = 0; n < nodes; ++n) values.push_back(n * n);
  }
  double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  double spread() const {
    double sum = 0;
    for (double v : values) sum += (v - mean()) * (v - mean());
    return sum / static_cast<double>(values.size());
  }
  void round(MoshpitKeys& keys, const std::vector<bool>& alive = {}) {
    const NodeGroups groups = keys.groups(alive);
    for (const auto& group : groups) {
      double sum = 0;
      for (int m : group) sum += values[static_cast<std::size_t>(m)];
      for (int m : group) {
        values[static_cast<std::size_t>(m)] = sum / static_cast<double>(group.size());
      }
    }
    keys.advance(groups);
  }
};

TEST(MoshpitKeys, FullGridsAreExactAfterDRounds) {
  for (const auto& [side, d] : {std::pair{4, 2}, {2, 4}, {3, 3}, {8, 2}, {2, 7}, {5, 1}}) {
    int nodes = 1;
    for (int k = 0; k < d; ++k) nodes *= side;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      MoshpitKeys keys(nodes, side, d, seed);
      Averaging a(nodes);
      const double mean = a.mean();
      for (int round = 0; round < d; ++round) a.round(keys);
      for (double v : a.values) EXPECT_NEAR(v, mean, 1e-9 * (1 + mean));
    }
  }
}

TEST(MoshpitKeys, HolesAndFailuresKeepTheMean) {
  SeededRandom random(5);
  for (int nodes : {9, 12, 14, 16}) {
    MoshpitKeys keys(nodes, 4, 2, 3);
    Averaging a(nodes);
    const double mean = a.mean(), before = a.spread();
    for (int round = 0; round < 60; ++round) {
      std::vector<bool> alive(static_cast<std::size_t>(nodes));
      for (std::size_t n = 0; n < alive.size(); ++n) alive[n] = random.below(20) != 0;
      for (const auto& group : keys.groups(alive)) EXPECT_LE(group.size(), 4u);
      a.round(keys, alive);
      EXPECT_NEAR(a.mean(), mean, 1e-9 * mean);
    }
    EXPECT_LT(a.spread(), 1e-9 * before) << nodes;
  }
}

TEST(MoshpitKeys, AFailedRoundLeavesKeysAlone) {
  MoshpitKeys keys(16, 4, 2, 1);
  const NodeGroups groups = keys.groups();
  std::vector<std::uint64_t> before;
  for (int n = 0; n < 16; ++n) before.push_back(keys.key(n));
  std::vector<bool> done(groups.size(), true);
  done[1] = false;
  keys.advance(groups, done);
  for (int m : groups[1]) EXPECT_EQ(keys.key(m), before[static_cast<std::size_t>(m)]);
  std::set<std::uint64_t> of_group;
  for (int m : groups[0]) of_group.insert(keys.key(m));
  EXPECT_EQ(of_group.size(), groups[0].size());  // those who met do not meet again
}

}  // namespace
}  // namespace riffle::moshpit_keys_test
