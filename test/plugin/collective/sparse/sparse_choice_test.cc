// Whether the sparse mode runs, and in which teams: node 0's choice on fabrics of known rates.
#include "plugin/collective/sparse/sparse_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plugin/kernels/types.h"
#include "topology/plan/planner.h"

namespace riffle::sparse_choice_test {
namespace {

constexpr std::uint64_t kChunk = 1 << 18;  // elements

std::vector<Layout::Piece> buckets_of(std::vector<std::uint64_t> sizes) {
  std::vector<Layout::Piece> pieces;
  for (std::uint32_t b = 0; b < sizes.size(); ++b) {
    for (std::uint64_t at = 0; at < sizes[b]; at += kChunk) {
      Layout::Piece p;
      p.bucket = b;
      p.first = at;
      p.valid = p.count = std::min(kChunk, sizes[b] - at);
      p.total = sizes[b];
      p.type = static_cast<int>(DataType::kFloat32);
      pieces.push_back(p);
    }
  }
  return pieces;
}

SyncSettings settings(bool is_auto, double density = 0.01) {
  SyncSettings s;
  s.mode = SyncMode::kSparse;
  s.min_bytes = 64 << 10;
  s.sparse.is_auto = is_auto;
  s.sparse.density = density;
  return s;
}

Fabric racks(int nodes, int count, std::int64_t kbps, std::int64_t uplink_kbps) {
  Fabric f = even_fabric(nodes, kbps);
  f.racks.clear();
  for (int r = 0; r < count; ++r) f.racks.push_back({"", uplink_kbps, uplink_kbps});
  for (int i = 0; i < nodes; ++i) f.nodes[i].rack = i % count;  // interleaved
  return f;
}

Result<SparseOrder> choose(const Fabric& fabric, const SyncSettings& s,
                           const std::vector<Layout::Piece>& pieces, double exchange_mbps = 2500) {
  const PlanSet exact = plan(fabric, 32 << 20, {})->plans;
  return choose_sparse(fabric, exact, pieces, s, kChunk, {{5000, 2000}, exchange_mbps});
}

TEST(SparseChoice, OnASlowNetworkAllLargeBucketsAreSparse) {
  const Result<SparseOrder> order =
      choose(even_fabric(8, 400'000), settings(true), buckets_of({8 << 20, 1 << 20, 1000}));
  ASSERT_TRUE(order) << order.status().message();
  EXPECT_EQ(std::ranges::count(order->is_sparse, 1), 32 + 4);
  EXPECT_EQ(order->is_sparse.back(), 0) << "a small one";
  EXPECT_NE(order->reason.find("2 of 2 large buckets"), std::string::npos) << order->reason;
}

TEST(SparseChoice, OnAFastNetworkAutoStaysExactAndSaysWhy) {
  const Fabric fast = even_fabric(8, 400'000'000);
  const auto pieces = buckets_of({8 << 20});
  // A processor that takes as long to select as to sum.
  const Result<SparseOrder> order = choose(fast, settings(true), pieces, 400);
  ASSERT_FALSE(order);
  EXPECT_NE(order.status().message().find("exact"), std::string::npos);
  EXPECT_TRUE(choose(fast, settings(false), pieces, 400)) << "who asks for it gets it";
}

// However fast the processors are: segments are handed from thread to thread.
TEST(SparseChoice, EverySegmentTakesTimeOfItsOwn) {
  const Fabric fast = even_fabric(8, 400'000'000);
  const SparseMachine quick{{50000, 20000}, 25000};
  const Result<SparseOrder> order = choose_sparse(
      fast, plan(fast, 32 << 20, {})->plans, buckets_of({8 << 20}), settings(true), kChunk, quick);
  EXPECT_FALSE(order) << order->reason;
}

// A small bucket is all latency: what it sends hardly matters.
TEST(SparseChoice, PerBucket) {
  Fabric fabric = even_fabric(3, 2'000'000);
  fabric.latency_us = 200;
  const Result<SparseOrder> order =
      choose(fabric, settings(true, 0.05), buckets_of({32 << 20, 20000}));
  ASSERT_TRUE(order) << order.status().message();
  EXPECT_EQ(order->is_sparse.front(), 1);
  EXPECT_EQ(order->is_sparse.back(), 0) << order->reason;
}

TEST(SparseChoice, TeamsStandInRacks) {
  const Fabric fabric = racks(8, 2, 400'000, 20'000);
  SyncSettings s = settings(false);
  s.sparse.teams = 2;
  const Result<SparseOrder> order = choose(fabric, s, buckets_of({8 << 20}));
  ASSERT_TRUE(order) << order.status().message();
  EXPECT_EQ(order->teams, 2u);
  EXPECT_EQ(order->node_at, (std::vector<std::uint64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
  // Free to choose it must not be slower than either.
  const sparse::Machine machine{.exchange_mbps = 2500};
  const sparse::SparsePlan best = sparse::best_plan(fabric, 0, 0.01, 8 << 20, kChunk, machine);
  const double free_us = sparse::predict(fabric, best, 0.01, 8 << 20, kChunk, machine).total_us;
  for (const int teams : {1, 2, 4, 8}) {
    const sparse::SparsePlan plan =
        sparse::best_plan(fabric, teams, 0.01, 8 << 20, kChunk, machine);
    ASSERT_EQ(plan.teams, teams);
    EXPECT_LE(free_us * 0.95,
              sparse::predict(fabric, plan, 0.01, 8 << 20, kChunk, machine).total_us);
  }
}

// Racks of four, listed in turns or one behind the other. By hand, in eighths of k over an uplink:
// in turns only steps of gap 1 cross, each by all four of a rack, with a block in the
// reduce-scatter and one in the all-gather; side by side all do, by 4, 2 and 1 of a rack, with 4, 2
// and 1 blocks, twice.
TEST(SparseChoice, OneTeamTakesNodesOfRacksInTurns) {
  const Fabric in_turns = racks(8, 2, 400'000, 20'000);
  Fabric in_order = in_turns;
  for (std::size_t i = 0; i < 8; ++i) in_order.nodes[i].rack = i < 4 ? 0 : 1;
  const auto network_us = [&](const Fabric& fabric, const sparse::SparsePlan& plan) {
    return sparse::predict(fabric, plan, 0.01, 8 << 20, 8 << 20, {}).network_us;
  };
  const auto plan_of = [](const Fabric& fabric) {
    return sparse::best_plan(fabric, 1, 0.01, 8 << 20, 8 << 20, {});
  };
  EXPECT_EQ(plan_of(in_turns).node_at, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(plan_of(in_order).node_at, (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
  const sparse::SparsePlan side_by_side{1, sparse::Across::kGathered, {0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_NEAR(network_us(in_order, side_by_side) / network_us(in_order, plan_of(in_order)),
              2 * (4 * 4 + 2 * 2 + 1) / 8.0, 0.1);
}

TEST(SparseChoice, TeamsThatDoNotDivideAreRefused) {
  SyncSettings s = settings(false);
  s.sparse.teams = 3;
  EXPECT_FALSE(choose(even_fabric(8, 400'000), s, buckets_of({8 << 20})));
}

// Bytes on the busiest link by hand: 8 equal nodes, one chunk of 2^18 elements at 1 %.
TEST(SparseChoice, PredictsWhatTheScheduleSends) {
  const Fabric fabric = even_fabric(8, 400'000);
  const sparse::SparsePlan plan = sparse::best_plan(fabric, 1, 0.01, kChunk, kChunk, {});
  const sparse::SparseTime t = sparse::predict(fabric, plan, 0.01, kChunk, kChunk, {});
  const double entries = 2 * 7 * 328;                         // 2 (P - 1) blocks of k / P
  const double bytes = entries * 6 + 14 * 8 + 6 * (64 + 16);  // block and message headers
  EXPECT_NEAR(t.network_us, bytes * 8 / 400, t.network_us * 0.02);
  EXPECT_EQ(t.processor_us, 0);
  EXPECT_NEAR(t.chunk_us, t.network_us + 6 * 50, t.chunk_us * 0.02);
}

TEST(SparseChoice, TheMachineIsMeasured) {
  const double mbps = sparse::measure_exchange_mbps();
  EXPECT_GT(mbps, 10);
  EXPECT_LT(mbps, 1e6);
}

}  // namespace
}  // namespace riffle::sparse_choice_test
