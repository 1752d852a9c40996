// The order of ranks for NCCL's own rings: against all orders of few nodes, against the bound and a
// proof that nothing is faster for many.
#include "topology/plan/rank_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>

#include "test/sanitized.h"
#include "topology/base/seeded_random.h"
#include "topology/plan/nccl_model.h"

namespace riffle::rank_order_test {
namespace {

constexpr std::int64_t kRate = 400'000;
constexpr std::uint64_t kBytes = 16 << 20;

int runs(int usual) {  // another number by hand: RIFFLE_TEST_RUNS=5000
  const char* text = std::getenv("RIFFLE_TEST_RUNS");
  return text != nullptr ? std::max(1, std::atoi(text)) : cases(usual);
}

std::vector<int> in_turn(int nodes) {
  std::vector<int> order(static_cast<std::size_t>(nodes));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Nodes anywhere in `racks` racks; uplinks all alike, or from slow to no limit, and nodes of
// different rates with them.
Fabric drawn(SeededRandom& random, int nodes, int racks, bool is_even) {
  Fabric f = even_fabric(nodes, kRate);
  f.racks.clear();
  for (int r = 0; r < racks; ++r) {
    std::int64_t up = kRate / 4, down = up;
    if (!is_even) {
      up = random.below(4) == 0 ? 0 : 20'000 + static_cast<std::int64_t>(random.below(kRate));
      down = random.below(2) == 0 ? up : 20'000 + static_cast<std::int64_t>(random.below(kRate));
    }
    f.racks.push_back({"r" + std::to_string(r), up, down});
  }
  for (int n = 0; n < nodes; ++n) {
    f.nodes[n].rack = n < racks ? n : static_cast<int>(random.below(racks));
    if (!is_even && random.below(4) == 0) f.nodes[n].out_kbps = kRate / 2;
  }
  random.shuffle(f.nodes);
  return f;
}

// Counted edge by edge: what rings of `members` nodes take, in us.
double counted_us(const Fabric& f, const std::vector<int>& order, int members) {
  std::map<int, double> edges, out, in;  // by rack
  double slowest = 1e300, worst = 0;
  const int nodes = f.size();
  for (int i = 0; i < nodes; ++i) {
    const NodeLink& a = f.nodes[order[i]];
    const NodeLink& b = f.nodes[order[i / members * members + (i + 1) % members]];
    edges[a.rack] += a.rack != b.rack;
    out[a.rack] += static_cast<double>(a.out_kbps);
    in[a.rack] += static_cast<double>(a.in_kbps);
    slowest = std::min(slowest, static_cast<double>(std::min(a.out_kbps, a.in_kbps)));
  }
  for (const auto& [rack, count] : edges) {
    const RackLink& link = f.racks[rack];
    const double up = link.up_kbps > 0 ? static_cast<double>(link.up_kbps) : out[rack];
    const double down = link.down_kbps > 0 ? static_cast<double>(link.down_kbps) : in[rack];
    worst = std::max(worst, count / std::min({up, out[rack], down, in[rack]}));
  }
  const double edge_bits = 2.0 * (members - 1) / members * kBytes * 8000;
  return edge_bits * std::max(worst, 1 / slowest);
}

struct Times {
  double all = 0, groups = 0;
  double slower() const { return std::max(all, groups); }
};
Times times_of(const Fabric& f, const std::vector<int>& order, int group) {
  const FabricView view(f);
  return {rings_time(view, order, f.size(), kBytes).slowest.time_us,
          rings_time(view, order, group, kBytes).slowest.time_us};
}

std::vector<int> best(const Fabric& f, int group = 1) {
  const auto order = best_rank_order(FabricView(f), group);
  EXPECT_TRUE(order) << order.status().message();
  std::vector<int> sorted = *order;
  std::ranges::sort(sorted);
  EXPECT_EQ(sorted, in_turn(f.size()));
  return *order;
}

// The best of all orders, nodes of a rack taken for the same.
double least_us(const Fabric& f, int group) {
  std::vector<int> order = in_turn(f.size());
  const auto by_rack = [&](int a, int b) { return f.nodes[a].rack < f.nodes[b].rack; };
  std::ranges::sort(order, by_rack);
  double least = 1e300;
  do {
    least = std::min(least, std::max(counted_us(f, order, f.size()), counted_us(f, order, group)));
  } while (std::next_permutation(order.begin(), order.end(), by_rack));
  return least;
}

Fabric racks8() {
  Fabric f = even_fabric(8, kRate);
  f.racks = {{"left", 200'000, 200'000}, {"right", 200'000, 200'000}};
  for (int n = 0; n < 8; ++n) f.nodes[n].rack = n % 2;
  return f;
}

TEST(RankOrder, Racks8ByHand) {
  const Fabric f = racks8();
  const FabricView view(f);
  // 1.75 x 16 MiB over every edge, four of which share 200 Mbit/s, or one has it.
  const double edge_us = 1.75 * kBytes * 8 / 200;
  const RingsTime before = rings_time(view, in_turn(8), 8, kBytes);
  EXPECT_NEAR(before.slowest.time_us, 4 * edge_us, 1);
  EXPECT_EQ(before.slowest.link, "uplink of rack left");
  EXPECT_EQ(before.crossings, 8);
  const std::vector<int> order = best(f);
  EXPECT_EQ(order, (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}));
  const RingsTime after = rings_time(view, order, 8, kBytes);
  EXPECT_NEAR(after.slowest.time_us, edge_us, 1);
  EXPECT_NEAR(rings_bound_us(view, 8, kBytes), edge_us, 1);
  EXPECT_EQ(after.crossings, 2);
}

TEST(RankOrder, NcclsOwnModelAgrees) {
  const Fabric f = racks8();
  const std::vector<int> order = best(f);
  const auto [ring, tree] = nccl_algorithms(f, kBytes);
  const auto [ordered_ring, ordered_tree] = nccl_algorithms(f, kBytes, order);
  EXPECT_NEAR(ring.network_us / ordered_ring.network_us, 4, 0.01);
  EXPECT_GT(tree.network_us, ordered_tree.network_us);
}

TEST(RankOrder, AGoodOrderStaysAsItIs) {
  Fabric f = even_fabric(12, kRate);
  EXPECT_EQ(best(f), in_turn(12));
  EXPECT_EQ(best(f, 4), in_turn(12));
  f.racks = {{"b", 1000, 1000}, {"a", 1000, 1000}, {"unused", 1, 1}};
  for (int n = 0; n < 12; ++n) f.nodes[n].rack = n < 5 ? 1 : 0;
  EXPECT_EQ(best(f), in_turn(12));
  EXPECT_EQ(best(even_fabric(1, kRate)), in_turn(1));
  EXPECT_EQ(best(even_fabric(2, kRate), 2), in_turn(2));
}

// Racks of 3, 3 and 2 nodes in pairs: the rack of 2 goes where it is not cut.
TEST(RankOrder, RacksEndWhereGroupsDo) {
  Fabric f = even_fabric(8, kRate);
  f.racks.assign(3, {"", kRate / 4, kRate / 4});
  for (int n = 0; n < 8; ++n) f.nodes[n].rack = std::vector{0, 0, 0, 2, 2, 1, 1, 1}[n];
  const std::vector<int> order = best(f, 2);
  const RingsTime pairs = rings_time(FabricView(f), order, 2, kBytes);
  EXPECT_EQ(pairs.crossings, 2);  // one pair
  EXPECT_NEAR(pairs.slowest.time_us, rings_bound_us(FabricView(f), 2, kBytes), 1);
}

TEST(RankOrder, GroupsMustDivideTheNodes) {
  const Fabric f = racks8();
  for (const int group : {-1, 0, 3, 16}) {
    const auto order = best_rank_order(FabricView(f), group);
    ASSERT_FALSE(order);
    EXPECT_EQ(order.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(order.status().message(), "groups of " + std::to_string(group) +
                                            " do not divide 8 nodes: accepted are 1, 2, 4, 8");
  }
  for (const int group : {1, 2, 4, 8}) EXPECT_TRUE(best_rank_order(FabricView(f), group));
}

TEST(RankOrder, TheModelCountsEdges) {
  SeededRandom random(3);
  for (int i = 0; i < 100; ++i) {
    const int group = 2 + static_cast<int>(random.below(4));
    const int nodes = group * (1 + static_cast<int>(random.below(8)));
    const Fabric f =
        drawn(random, nodes, 1 + static_cast<int>(random.below(nodes / 2 + 1)), i % 2 == 0);
    std::vector<int> order = in_turn(nodes);
    random.shuffle(order);
    const Times times = times_of(f, order, group);
    EXPECT_NEAR(times.all / counted_us(f, order, nodes), 1, 1e-6);
    EXPECT_NEAR(times.groups / counted_us(f, order, group), 1, 1e-6);
  }
}

TEST(RankOrder, TheBestOfAllOrdersOfFewNodes) {
  SeededRandom random(1);
  for (int i = 0; i < runs(400); ++i) {
    const int nodes = 2 + static_cast<int>(random.below(7));
    const Fabric f =
        drawn(random, nodes, 1 + static_cast<int>(random.below(std::min(nodes, 4))), i % 3 == 0);
    for (int group = 1; group <= nodes; ++group) {
      if (nodes % group != 0) continue;
      const double ours = times_of(f, best(f, group), group).slower();
      EXPECT_NEAR(ours / least_us(f, group), 1, 1e-6) << "run " << i << ", groups of " << group;
    }
  }
}

// More orders than are all tried.
TEST(RankOrder, TheLocalSearchFindsTheBestToo) {
  SeededRandom random(2);
  for (int i = 0; i < (kIsSanitized ? 1 : 8); ++i) {
    const Fabric f = drawn(random, 12, 4, false);
    const int group = std::vector{2, 3, 4, 6}[i % 4];
    const double ours = times_of(f, best(f, group), group).slower();
    EXPECT_LE(ours, 1.02 * least_us(f, group)) << "run " << i << ", groups of " << group;
  }
}

// Where all uplinks are alike and limit, an order is at the bound exactly if no rack shares two
// groups. Then what is left of large racks (at most two of them in a group) and small racks fill
// groups with nothing over: whether they can is decided here.
class Filling {
 public:
  Filling(const FabricView& view, int group) : group_(group), left_(2 * (group - 1)) {
    for (const RackView& rack : view.racks()) {
      const int size = static_cast<int>(rack.members.size());
      if (size < group) ++left_[group - 1 + size - 1];
      if (size > group && size % group != 0) ++left_[size % group - 1];
    }
  }
  // Nothing: it took too long to find out.
  std::optional<bool> is_possible() {
    const bool is_found = next_group();
    return steps_ < kMostSteps ? std::optional(is_found) : std::nullopt;
  }

 private:
  static constexpr int kMostSteps = 1'000'000;

  bool next_group() {
    if (++steps_ >= kMostSteps) return false;
    const auto first = std::ranges::find_if(left_, [](int count) { return count > 0; });
    if (first == left_.end()) return true;
    const auto known = impossible_.find(left_);
    return known == impossible_.end() && take(static_cast<int>(first - left_.begin()), group_, 0);
  }
  // Large ones come first: remainders 1 .. group - 1; then small racks by size.
  bool take(int kind, int room, int large) {
    const bool is_large = kind < group_ - 1;
    const int size = kind % (group_ - 1) + 1;
    if (left_[kind] == 0 || size > room || (is_large && large == 2)) return false;
    const auto before = left_;
    --left_[kind];
    bool is_found = room == size && next_group();
    for (int k = kind; k < 2 * (group_ - 1) && !is_found && room > size; ++k) {
      is_found = take(k, room - size, large + (is_large ? 1 : 0));
    }
    left_ = before;
    if (!is_found && room == group_) impossible_[left_] = true;
    return is_found;
  }

  int group_, steps_ = 0;
  std::vector<int> left_;
  std::map<std::vector<int>, bool> impossible_;
};

// Up to 256 nodes.
TEST(RankOrder, OfManyNodesAtTheBoundOrProvenToBeTheBest) {
  SeededRandom random(11);
  int at_bound = 0, proven = 0, above = 0;
  for (int i = 0; i < runs(1000); ++i) {
    const int group = 1 + static_cast<int>(random.below(8));
    const int nodes = group * (2 + static_cast<int>(random.below(256 / group - 1)));
    const bool is_even = i % 2 == 0;
    const Fabric f =
        drawn(random, nodes, 1 + static_cast<int>(random.below(std::max(1, nodes / 3))), is_even);
    const FabricView view(f);
    const Times ours = times_of(f, best(f, group), group);
    const double bound =
        std::max(rings_bound_us(view, nodes, kBytes), rings_bound_us(view, group, kBytes));
    EXPECT_GE(ours.slower(), bound * (1 - 1e-6));
    EXPECT_NEAR(ours.all / rings_bound_us(view, nodes, kBytes), 1, group == 1 ? 1e-6 : 1);
    if (ours.slower() <= 1.02 * bound) {
      ++at_bound;
    } else if (is_even && Filling(view, group).is_possible() == false) {
      // No rack in three groups, and the ring of all nodes leaves each once: the next best.
      ++proven;
      EXPECT_NEAR(ours.slower(), 2 * rings_bound_us(view, group, kBytes), 1e-6 * ours.slower());
    } else {
      ++above;
      std::printf("run %d: %d nodes, groups of %d, %.3f x the bound\n", i, nodes, group,
                  ours.slower() / bound);
    }
  }
  std::printf("%d at the bound, %d proven to be the best, %d above\n", at_bound, proven, above);
  EXPECT_LE(above, runs(1000) / 500);  // 1 of 1,000: not found, or not decided here
}

}  // namespace
}  // namespace riffle::rank_order_test
