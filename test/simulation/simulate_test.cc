// Simulated times of whole all-reduces against the formulas of docs/algorithms.md.
#include "lab/simulation/simulate.h"

#include <gtest/gtest.h>

#include "topology/plan/planner.h"

namespace riffle::sim::simulate_test {
namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;

PlanSet plans_of(const Fabric& fabric, std::uint64_t bytes, const std::string& only = "") {
  PlanOptions options;
  options.only = only;
  return plan(fabric, bytes, options)->plans;
}

double x_bound(const Fabric& fabric, std::uint64_t bytes, const std::string& only = "") {
  const Result<Simulated> run = simulate(fabric, plans_of(fabric, bytes, only), bytes);
  EXPECT_TRUE(run) << run.status().message();
  return run ? run->time_us / bound_us(fabric, bytes) : 0;
}

// One fragment per shard, so that everything goes in two steps that cannot overlap: 2 * 7/8 of the
// buffer over the link, two latencies, and 64 bytes for each of the 14 frames.
TEST(SimulateTest, DirectOnEvenNodesTakesWhatTheFormulaSays) {
  const Fabric fabric = even_fabric(8, 1'000'000);
  const std::uint64_t bytes = 512 << 10;
  SimulateOptions options;
  options.network.tick_ns = 1;
  const Result<Simulated> run = simulate(fabric, plans_of(fabric, bytes, "direct"), bytes, options);
  ASSERT_TRUE(run) << run.status().message();
  const double formula_us = (1.75 * static_cast<double>(bytes) + 14 * 64) / 125 + 2 * 50;
  EXPECT_NEAR(run->time_us, formula_us, 0.1);
  EXPECT_EQ(run->counters.payload_bytes, 14 * bytes);  // 8 nodes send 1.75 of it
}

// A ring of one chunk: 2 * 7 steps of an eighth each, one after the other.
TEST(SimulateTest, RingOnEvenNodesTakesWhatTheFormulaSays) {
  const Fabric fabric = even_fabric(8, 1'000'000);
  const std::uint64_t bytes = 512 << 10;
  SimulateOptions options;
  options.network.tick_ns = 1;
  const Result<Simulated> run = simulate(fabric, plans_of(fabric, bytes, "ring"), bytes, options);
  ASSERT_TRUE(run) << run.status().message();
  const double formula_us = 14 * ((static_cast<double>(bytes) / 8 + 64) / 125 + 50);
  EXPECT_NEAR(run->time_us, formula_us, 0.1);
}

// Of three nodes each tree is a chain of two hops, and the hops of one are not in the way of the
// other's: four steps of half the buffer.
TEST(SimulateTest, DoubleTreeOfThreeTakesWhatTheFormulaSays) {
  const Fabric fabric = even_fabric(3, 1'000'000);
  const std::uint64_t bytes = 256 << 10;
  SimulateOptions options;
  options.network.tick_ns = 1;
  PlanSet plans = plans_of(fabric, bytes, "double-tree");
  plans.chunk_bytes = 0;  // one chunk, and so one fragment per half
  const Result<Simulated> run = simulate(fabric, plans, bytes, options);
  ASSERT_TRUE(run) << run.status().message();
  const double formula_us = 4 * ((static_cast<double>(bytes) / 2 + 64) / 125 + 50);
  EXPECT_NEAR(run->time_us, formula_us, 0.1);
  EXPECT_EQ(run->counters.payload_bytes, 4 * bytes);  // two edges per tree, both ways
}

// What the planner foretells for two trees, from small sums to large ones.
TEST(SimulateTest, DoubleTreesTakeWhatTheModelSays) {
  for (const int nodes : {5, 8, 13, 16, 32, 64}) {
    const Fabric fabric = even_fabric(nodes, 1'000'000);
    for (const std::uint64_t bytes : {kMegabyte / 64, kMegabyte, 32 * kMegabyte}) {
      PlanOptions options;
      options.only = "double-tree";
      options.message_ns = 0;  // the simulator's processors are infinitely fast
      const Result<PlanChoice> choice = plan(fabric, bytes, options);
      ASSERT_TRUE(choice) << choice.status().message();
      const Result<Simulated> run = simulate(fabric, choice->plans, bytes);
      ASSERT_TRUE(run) << run.status().message();
      const double prediction = choice->time_us / run->time_us;
      if (bytes < kMegabyte) {  // the model takes the busiest node's first hop for all nodes'
        EXPECT_GE(prediction, 1) << nodes << " nodes, " << bytes;
        EXPECT_LE(prediction, 1.4) << nodes << " nodes, " << bytes;
      } else {
        EXPECT_NEAR(prediction, 1, 0.1) << nodes << " nodes, " << bytes;
      }
      EXPECT_GE(run->time_us, choice->bound_us);
    }
  }
}

TEST(SimulateTest, LargeBuffersComeCloseToTheBound) {
  Fabric straggler = even_fabric(8, 400'000);
  straggler.nodes[3].out_kbps = straggler.nodes[3].in_kbps = 100'000;
  Fabric racks = even_fabric(8, 400'000);
  racks.racks = {{"a", 200'000, 200'000}, {"b", 200'000, 200'000}};
  for (int n = 0; n < 8; ++n) racks.nodes[n].rack = n % 2;
  EXPECT_LE(x_bound(even_fabric(8, 400'000), 32 * kMegabyte), 1.03);
  EXPECT_LE(x_bound(straggler, 32 * kMegabyte), 1.03);
  EXPECT_LE(x_bound(racks, 32 * kMegabyte), 1.03);
}

// The tick that is chosen by itself changes the result by less than half a percent.
TEST(SimulateTest, TheChosenTickIsAccurate) {
  Fabric fabric = even_fabric(12, 1'000'000);
  for (int n = 0; n < 12; ++n) {
    fabric.nodes[n].out_kbps = fabric.nodes[n].in_kbps = 1'000'000 / (1 + n % 3);
  }
  const std::uint64_t bytes = 4 * kMegabyte;
  const PlanSet plans = plans_of(fabric, bytes);
  SimulateOptions exact;
  exact.network.tick_ns = 1;
  const Result<Simulated> fine = simulate(fabric, plans, bytes, exact);
  const Result<Simulated> coarse = simulate(fabric, plans, bytes);
  ASSERT_TRUE(fine && coarse);
  EXPECT_NEAR(coarse->time_us / fine->time_us, 1, 0.005);
}

TEST(SimulateTest, LinksAreNamedAndUsedUp) {
  Fabric fabric = even_fabric(4, 1'000'000);
  fabric.nodes[2].name = "slow";
  fabric.nodes[2].out_kbps = 250'000;
  const Result<Simulated> run = simulate(fabric, plans_of(fabric, 16 * kMegabyte), 16 * kMegabyte);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->links.front().link, "sending of node slow");
  EXPECT_GT(run->links.front().share, 0.95);
  EXPECT_LE(run->links.front().share, 1);
}

// 1,024 nodes in 16 racks behind 4:1 uplinks.
TEST(SimulateTest, AThousandNodes) {
  Fabric fabric = even_fabric(1024, 10'000'000);
  fabric.racks.assign(16, {"", 160'000'000, 160'000'000});
  for (int n = 0; n < 1024; ++n) fabric.nodes[n].rack = n / 64;
  SimulateOptions options;
  options.engine.max_chunks = 8;
  const std::uint64_t bytes = kMegabyte;
  PlanOptions plan_options;
  plan_options.max_lanes = 2;
  const Result<PlanChoice> choice = plan(fabric, bytes, plan_options);
  ASSERT_TRUE(choice);
  const Result<Simulated> run = simulate(fabric, choice->plans, bytes, options);
  ASSERT_TRUE(run) << run.status().message();
  EXPECT_GE(run->time_us, choice->bound_us);
  EXPECT_LE(run->time_us, 1.5 * choice->bound_us);
}

}  // namespace
}  // namespace riffle::sim::simulate_test
