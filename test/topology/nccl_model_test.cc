// NCCL's own algorithms on a fabric: times by hand, and which of them NCCL would take.
#include "topology/plan/nccl_model.h"

#include <gtest/gtest.h>

namespace riffle::nccl_model_test {
namespace {

constexpr std::int64_t kGbit = 1'000'000;  // kbit/s
constexpr std::uint64_t kBytes = 32 << 20;

double ring_us(const Fabric& fabric) { return nccl_algorithms(fabric, kBytes)[0].network_us; }
double tree_us(const Fabric& fabric) { return nccl_algorithms(fabric, kBytes)[1].network_us; }

TEST(NcclModel, EvenNodesByHand) {
  Fabric fabric = even_fabric(8, 10 * kGbit);
  // 2 * 7/8 of the buffer at 1,250 MB/s; 14 hops of 50 us that take 1.4 times as long.
  EXPECT_NEAR(ring_us(fabric), 1.75 * kBytes / 1250 + 8.4 + 1.4 * 14 * 50, 1);
  // Twice the buffer at 0.92 * 0.7 of the rate; up and down three levels.
  EXPECT_NEAR(tree_us(fabric), 2.0 * kBytes / 1250 / 0.92 / 0.7 + 8.4 + 6 * 50, 1);
  fabric.latency_us = 5;  // less than NCCL's own figure
  EXPECT_NEAR(ring_us(fabric), 1.75 * kBytes / 1250 + 8.4 + 1.4 * 14 * 14, 1);
  const auto [ring, tree] = nccl_algorithms(fabric, kBytes);
  EXPECT_DOUBLE_EQ(ring.moved, 1.75);
  EXPECT_DOUBLE_EQ(tree.moved, 2);
}

TEST(NcclModel, TreesWinWhereThereAreManyHops) {
  EXPECT_LT(ring_us(even_fabric(8, 10 * kGbit)), tree_us(even_fabric(8, 10 * kGbit)));
  EXPECT_LT(ring_us(even_fabric(64, 10 * kGbit)), tree_us(even_fabric(64, 10 * kGbit)));
  EXPECT_GT(ring_us(even_fabric(256, 100 * kGbit)), tree_us(even_fabric(256, 100 * kGbit)));
}

TEST(NcclModel, TheSlowestNodeSetsThePace) {
  Fabric fabric = even_fabric(7, 10 * kGbit);
  const double even_us = ring_us(fabric);
  fabric.nodes[3].out_kbps = 5 * kGbit;
  EXPECT_NEAR(ring_us(fabric) / even_us, 2, 0.05);
}

// The ring goes by number: four nodes of each of two racks, one behind the other and in turn.
TEST(NcclModel, RanksInTurnCrossTheUplinksAtEveryHop) {
  Fabric fabric = even_fabric(8, 10 * kGbit);
  fabric.racks.assign(2, {"", 10 * kGbit, 10 * kGbit});
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n / 4;
  const double in_order_us = ring_us(fabric);
  for (int n = 0; n < 8; ++n) fabric.nodes[n].rack = n % 2;
  EXPECT_NEAR(ring_us(fabric) / in_order_us, 4, 0.1);
}

TEST(NcclModel, TwoNodes) {
  const auto [ring, tree] = nccl_algorithms(even_fabric(2, 10 * kGbit), kBytes);
  EXPECT_DOUBLE_EQ(ring.moved, 1);
  EXPECT_DOUBLE_EQ(tree.moved, 1);
  EXPECT_LT(ring.network_us, tree.network_us);
}

}  // namespace
}  // namespace riffle::nccl_model_test
