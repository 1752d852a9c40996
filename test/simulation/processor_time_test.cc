// What RIFFLE_COLLNET=auto believes that adding up takes, against what the engine adds up: the
// partial sums that reach every node of a simulated job, at the speed that the kernels were
// measured to have here. The speed is the scale of both sides, so nothing hangs on a busy machine.
#include <gtest/gtest.h>

#include "lab/simulation/simulate.h"
#include "plugin/collective/base/machine_speed.h"
#include "topology/plan/planner.h"

namespace riffle::sim::processor_time_test {
namespace {

constexpr std::int64_t kGbit = 1'000'000;  // kbit/s
constexpr std::uint64_t kPlanned = 32 << 20;
constexpr std::uint64_t kAllLanes = 8 << 20;  // as many chunks as a plan has lanes

// What is modelled over what was measured, for `bytes` bytes by the plan for 32 MiB.
double ratio(const Fabric& fabric, std::uint64_t bytes, const MachineSpeed& speed) {
  const Result<PlanChoice> choice = plan(fabric, kPlanned, {});
  EXPECT_TRUE(choice) << choice.status().message();
  const Result<Simulated> run = simulate(fabric, choice->plans, bytes);
  EXPECT_TRUE(run) << run.status().message();
  const double measured_us =
      static_cast<double>(run->most_added_bytes) / static_cast<double>(speed.reduce_mbps);
  return processor_time(choice->plans, bytes, speed).reduce_us / measured_us;
}

TEST(ProcessorTime, OfAddingUpIsThatOfTheBytesTheEngineAdds) {
  const MachineSpeed speed = measure_machine();
  ASSERT_GT(speed.reduce_mbps, 0);
  for (const int nodes : {2, 3, 4, 6, 8, 16, 32, 64, 128, 256}) {
    for (const int gbit : {10, 25, 50, 100}) {
      EXPECT_NEAR(ratio(even_fabric(nodes, gbit * kGbit), 2 << 20, speed), 1, 0.02)
          << nodes << " nodes, " << gbit << " Gbit/s";
    }
  }
}

TEST(ProcessorTime, OfUnevenNodesIsThatOfTheOneThatAddsMost) {
  const MachineSpeed speed = {.reduce_mbps = 5000, .stack_mbps = 3000};
  for (const int nodes : {2, 5, 8, 16}) {
    Fabric fabric = even_fabric(nodes, 10 * kGbit);
    fabric.nodes[1].out_kbps = fabric.nodes[1].in_kbps = 2 * kGbit;
    EXPECT_NEAR(ratio(fabric, kAllLanes, speed), 1, 0.05) << nodes;
    fabric.racks.assign(2, {"", 8 * kGbit, 8 * kGbit});
    for (int n = 0; n < nodes; ++n) fabric.nodes[n].rack = n % 2;
    EXPECT_NEAR(ratio(fabric, kAllLanes, speed), 1, 0.05) << nodes << " in two racks";
  }
}

// 128 nodes that share alike: 3 ms at 11 GB/s, where a 128th of the buffer would take 0.02.
TEST(ProcessorTime, OfManyNodesIsNearlyThatOfTheWholeBuffer) {
  const MachineSpeed speed = {.reduce_mbps = 11'000, .stack_mbps = 3000};
  const PlanSet plans = plan(even_fabric(128, 10 * kGbit), kPlanned, {})->plans;
  const ProcessorTime time = processor_time(plans, kPlanned, speed);
  EXPECT_NEAR(time.reduce_us, 3026, 30);
  EXPECT_NEAR(time.stack_us, 22195, 30);
}

}  // namespace
}  // namespace riffle::sim::processor_time_test
