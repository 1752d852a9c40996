// What RIFFLE_COLLNET=auto believes a node to add up, against what the engine adds up: the partial
// sums that reach every node of a simulated job; and the time that this is taken to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lab/simulation/simulate.h"
#include "plugin/collective/base/machine_speed.h"
#include "topology/plan/loads.h"
#include "topology/plan/planner.h"

namespace riffle::sim::processor_time_test {
namespace {

constexpr std::int64_t kGbit = 1'000'000;  // kbit/s
constexpr std::uint64_t kPlanned = 32 << 20;
constexpr std::uint64_t kAllLanes = 8 << 20;  // as many chunks as a plan has lanes

// What is counted over what was added, for `bytes` bytes by the plan for 32 MiB, of the node that
// adds most.
double ratio(const Fabric& fabric, std::uint64_t bytes) {
  const Result<PlanChoice> choice = plan(fabric, kPlanned, {});
  EXPECT_TRUE(choice) << choice.status().message();
  const Result<Simulated> run = simulate(fabric, choice->plans, bytes);
  EXPECT_TRUE(run) << run.status().message();
  const std::vector<Added> added = added_up(choice->plans);
  const auto most = std::ranges::max(added, {}, &Added::received).received;
  const double part = static_cast<double>(most) / static_cast<double>(kShareUnits) /
                      static_cast<double>(choice->plans.lanes.size());
  return part * static_cast<double>(bytes) / static_cast<double>(run->most_added_bytes);
}

TEST(ProcessorTime, CountsTheBytesThatTheEngineAdds) {
  for (const int nodes : {2, 3, 4, 6, 8, 16, 32, 64, 128, 256}) {
    for (const int gbit : {10, 25, 50, 100}) {
      EXPECT_NEAR(ratio(even_fabric(nodes, gbit * kGbit), 2 << 20), 1, 0.02)
          << nodes << " nodes, " << gbit << " Gbit/s";
    }
  }
}

TEST(ProcessorTime, OfUnevenNodesIsThatOfTheOneThatAddsMost) {
  for (const int nodes : {2, 5, 8, 16}) {
    Fabric fabric = even_fabric(nodes, 10 * kGbit);
    fabric.nodes[1].out_kbps = fabric.nodes[1].in_kbps = 2 * kGbit;
    EXPECT_NEAR(ratio(fabric, kAllLanes), 1, 0.05) << nodes;
    fabric.racks.assign(2, {"", 8 * kGbit, 8 * kGbit});
    for (int n = 0; n < nodes; ++n) fabric.nodes[n].rack = n % 2;
    EXPECT_NEAR(ratio(fabric, kAllLanes), 1, 0.05) << nodes << " in two racks";
  }
}

// Ten sums of two operands that pass through memory take longer than one of eleven.
TEST(ProcessorTime, SumsOfManyOperandsTakeOnePass) {
  const MachineSpeed speed = {.reduce_mbps = 11'000, .stack_mbps = 3000};
  PlanOptions options;
  const auto reduce_us = [&](const char* only) {
    options.only = only;
    const PlanSet plans = plan(even_fabric(8, 10 * kGbit), kPlanned, options)->plans;
    return processor_time(plans, kPlanned, speed).reduce_us;
  };
  const double whole_us = static_cast<double>(kPlanned) / 11'000;
  EXPECT_NEAR(reduce_us("ring"), whole_us * 7 / 8, 1);
  EXPECT_NEAR(reduce_us("direct"), whole_us * (1 + 6 / 6.0) / 8, 1);
  // The inner nodes of a tree add two children to their own half of the buffer.
  EXPECT_GT(reduce_us("tree"), whole_us / 2);
  EXPECT_LT(reduce_us("tree"), whole_us);
}

// TCP carries nearly all of the buffer both ways, however many share it.
TEST(ProcessorTime, OfTcpIsThatOfTheWholeBuffer) {
  const MachineSpeed speed = {.reduce_mbps = 11'000, .stack_mbps = 3000};
  const PlanSet plans = plan(even_fabric(128, 10 * kGbit), kPlanned, {})->plans;
  EXPECT_NEAR(processor_time(plans, kPlanned, speed).stack_us, 22195, 30);
}

}  // namespace
}  // namespace riffle::sim::processor_time_test
