// topology/plan/patterns: what every pattern promises, on groups of all sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "topology/plan/patterns/pattern.h"

namespace riffle::patterns_test {
namespace {

constexpr int kMostMembers = 70;

class Patterns : public ::testing::TestWithParam<Pattern> {
 protected:
  const GroupExchange& exchange_ = exchange_of(GetParam());
};

INSTANTIATE_TEST_SUITE_P(All, Patterns, ::testing::ValuesIn(kPatterns), [](const auto& info) {
  std::string name = exchange_of(info.param).name();
  std::erase(name, '-');
  return name;
});

// How many hops `next` takes from `member` to `root`; more than `size` if it never gets there.
template <class Next>
int hops(int size, int root, int member, Next next) {
  int count = 0;
  for (; member != root && count <= size; ++count) member = next(member);
  return count;
}

TEST_P(Patterns, AllWaysLeadToTheOwnerAndBack) {
  for (int size = 2; size <= kMostMembers; ++size) {
    int deepest = 0;
    for (int shard = 0; shard < size; ++shard) {
      for (int m = 0; m < size; ++m) {
        const int up =
            hops(size, shard, m, [&](int at) { return exchange_.partial_to(size, shard, at); });
        const int down =
            hops(size, shard, m, [&](int at) { return exchange_.sum_from(size, shard, at); });
        deepest = std::max({deepest, up, down});
      }
    }
    EXPECT_EQ(deepest, exchange_.depth(size)) << size << " members";
  }
}

TEST_P(Patterns, BothEndsOfAHopKnowIt) {
  for (int size = 2; size <= kMostMembers; ++size) {
    for (int shard = 0; shard < size; ++shard) {
      std::set<std::pair<int, int>> partials, sums, listed_partials, listed_sums;
      for (int m = 0; m < size; ++m) {
        if (m != shard) {
          partials.emplace(m, exchange_.partial_to(size, shard, m));
          sums.emplace(exchange_.sum_from(size, shard, m), m);
        }
        const std::vector<int> from = exchange_.partials_from(size, shard, m);
        EXPECT_TRUE(std::is_sorted(from.begin(), from.end()));
        for (const int child : from) listed_partials.emplace(child, m);
        for (const int child : exchange_.sum_to(size, shard, m)) listed_sums.emplace(m, child);
      }
      ASSERT_EQ(partials, listed_partials) << size << " members, shard " << shard;
      ASSERT_EQ(sums, listed_sums) << size << " members, shard " << shard;
    }
  }
}

TEST_P(Patterns, TrafficIsAllHopsOfAllShards) {
  std::mt19937 random(5);
  for (int size = 2; size <= kMostMembers; ++size) {
    std::vector<Share> cuts = {static_cast<Share>(random() % 100)};
    for (int m = 0; m < size; ++m) cuts.push_back(cuts.back() + random() % 3 * (random() % 1000));
    for (const Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
      using Sum = std::pair<std::uint64_t, std::uint64_t>;
      std::map<std::pair<int, int>, Sum> expected, listed;
      for (int shard = 0; shard < size; ++shard) {
        if (cuts[shard] == cuts[shard + 1]) continue;
        for (int m = 0; m < size; ++m) {
          if (m == shard) continue;
          const auto hop = phase == Phase::kReduceScatter
                               ? std::pair(m, exchange_.partial_to(size, shard, m))
                               : std::pair(exchange_.sum_from(size, shard, m), m);
          expected[hop].first += cuts[shard + 1] - cuts[shard];
          expected[hop].second += 1;
        }
      }
      for (const PairTraffic& t : exchange_.traffic(cuts, phase)) {
        if (t.shards == 0) continue;
        listed[{t.from, t.to}].first += t.units;
        listed[{t.from, t.to}].second += t.shards;
      }
      EXPECT_EQ(listed, expected) << size << " members";
    }
  }
}

TEST_P(Patterns, OneHopIsNeededToSumInMemberOrder) {
  for (int size = 2; exchange_.sums_in_member_order() && size <= kMostMembers; ++size) {
    EXPECT_EQ(exchange_.depth(size), 1);
  }
}

// What makes two trees as good as a ring: a leaf of one is an inner node of the other.
TEST(DoubleTree, TwoOwnersPassOnAtMostTheSpan) {
  const GroupExchange& trees = exchange_of(Pattern::kDoubleTree);
  for (int size = 3; size <= 300; ++size) {
    const int second = size % 2 == 0 ? size - 1 : 1;
    for (int m = 0; m < size; ++m) {
      const std::size_t a = trees.partials_from(size, 0, m).size();
      const std::size_t b = trees.partials_from(size, second, m).size();
      EXPECT_LE(a + b, 2U) << "member " << m << " of " << size;
      EXPECT_TRUE(a == 0 || b == 0 || m == 0 || m == second) << "member " << m << " of " << size;
    }
  }
}

// The figure in NCCL's src/graph/trees.cc: 14 ranks.
TEST(DoubleTree, IsNumberedAsInNccl) {
  const GroupExchange& trees = exchange_of(Pattern::kDoubleTree);
  const std::vector<int> parents = {-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12};
  for (int m = 1; m < 14; ++m) {
    EXPECT_EQ(trees.partial_to(14, 0, m), parents[m]);
    EXPECT_EQ(trees.partial_to(14, 13, 13 - m), 13 - parents[m]);
  }
}

TEST(PatternCodes, AreKnownOnlyIfATableLineHasThem) {
  for (int code = 0; code < 256; ++code) {
    const auto pattern = static_cast<Pattern>(code);
    const bool is_listed = std::count(kPatterns.begin(), kPatterns.end(), pattern) == 1;
    EXPECT_EQ(find_exchange(pattern) != nullptr, is_listed) << code;
    EXPECT_TRUE(!is_listed || code < 16) << "the wire form has four bits for " << code;
  }
}

}  // namespace
}  // namespace riffle::patterns_test
