// What RIFFLE_COLLNET=auto believes a node to add up, against what the engine adds up: the partial
// sums that reach every node of a simulated job; and the time that this is taken to be.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lab/simulation/simulate.h"
#include "plugin/collective/base/machine_speed.h"
#include "plugin/collective/engine/program.h"
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

TEST(AddedUp, AreTheBytesThatTheEngineAdds) {
  for (const int nodes : {2, 3, 4, 6, 8, 16, 32, 64, 128, 256}) {
    for (const int gbit : {10, 25, 50, 100}) {
      EXPECT_NEAR(ratio(even_fabric(nodes, gbit * kGbit), 2 << 20), 1, 0.02)
          << nodes << " nodes, " << gbit << " Gbit/s";
    }
  }
}

TEST(AddedUp, AreTheBytesThatTheEngineAddsOnUnevenNodes) {
  for (const int nodes : {2, 5, 8, 16}) {
    Fabric fabric = even_fabric(nodes, 10 * kGbit);
    fabric.nodes[1].out_kbps = fabric.nodes[1].in_kbps = 2 * kGbit;
    EXPECT_NEAR(ratio(fabric, kAllLanes), 1, 0.05) << nodes;
    fabric.racks.assign(2, {"", 8 * kGbit, 8 * kGbit});
    for (int n = 0; n < nodes; ++n) fabric.nodes[n].rack = n % 2;
    EXPECT_NEAR(ratio(fabric, kAllLanes), 1, 0.05) << nodes << " in two racks";
  }
}

// By rank, from what nodes are told to do.
std::vector<Added> by_programs(const PlanSet& plans) {
  std::vector<Added> added(static_cast<std::size_t>(plans.lanes[0].nodes));
  for (const GroupPlan& lane : plans.lanes) {
    for (std::size_t rank = 0; rank < added.size(); ++rank) {
      const Result<Program> program = compile(lane, static_cast<int>(rank));
      EXPECT_TRUE(program) << program.status().message();
      for (const LocalGroup& g : program->groups) {
        for (std::size_t j = 0; j < g.routes.size(); ++j) {
          const std::uint64_t units = g.group.cuts[j + 1] - g.group.cuts[j];
          const std::size_t operands = g.routes[j].operands();
          added[rank].received += units * (operands - 1);
          if (operands > 1) added[rank].sums += units;
        }
      }
    }
  }
  return added;
}

TEST(AddedUp, IsWhatProgramsSay) {
  for (const int nodes : {2, 3, 7, 16}) {
    Fabric fabric = even_fabric(nodes, 10 * kGbit);
    fabric.nodes[1].out_kbps = fabric.nodes[1].in_kbps = 2 * kGbit;
    for (const int racks : {1, 2}) {
      fabric.racks.assign(static_cast<std::size_t>(racks), {"", 8 * kGbit, 8 * kGbit});
      for (int n = 0; n < nodes; ++n) fabric.nodes[n].rack = n % racks;
      for (const char* only : {"", "ring", "direct", "tree"}) {
        PlanOptions options;
        options.only = only;
        const Result<PlanChoice> choice = plan(fabric, kPlanned, options);
        if (nodes == 2 && only == std::string("tree")) continue;  // there is none
        ASSERT_TRUE(choice) << choice.status().message();
        const std::vector<Added> counted = added_up(choice->plans);
        const std::vector<Added> told = by_programs(choice->plans);
        for (std::size_t rank = 0; rank < told.size(); ++rank) {
          EXPECT_EQ(counted[rank].received, told[rank].received) << choice->plans.name << rank;
          EXPECT_EQ(counted[rank].sums, told[rank].sums) << choice->plans.name << rank;
        }
      }
    }
  }
}

// Seven operands that arrive for one sum take less than seven sums of two operands.
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
  EXPECT_NEAR(reduce_us("direct"), whole_us / 8 * (1 + 6 / kInCache), 1);
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
