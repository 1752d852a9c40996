// A thousand random scenarios, in parts so that they run side by side. A failing one prints the
// command that repeats it.
#include <gtest/gtest.h>

#include "lab/simulation/play.h"
#include "topology/plan/planner.h"

namespace riffle::sim::scenarios_test {
namespace {

constexpr std::uint64_t kSeeds = 1000;
constexpr std::uint64_t kParts = 8;

class ScenariosTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ScenariosTest, KeepEveryPromise) {
  int with_errors = 0, plan_changes = 0;
  std::uint64_t calls = 0;
  for (std::uint64_t seed = 1 + GetParam(); seed <= kSeeds; seed += kParts) {
    const Scenario scenario = draw_scenario(seed);
    const Outcome outcome = play(scenario);
    EXPECT_EQ(outcome.broken, "") << describe(scenario) << "again: riffle sim --seed " << seed;
    with_errors += outcome.failed_nodes > 0;
    calls += outcome.calls;
    plan_changes += outcome.plan_changes;
  }
  // They are worth something: calls succeed, and faults are felt.
  EXPECT_GT(calls, kSeeds / kParts);
  EXPECT_GT(with_errors, static_cast<int>(kSeeds / kParts / 10));
  EXPECT_GE(plan_changes, 3);
}

INSTANTIATE_TEST_SUITE_P(Part, ScenariosTest, ::testing::Range<std::uint64_t>(0, kParts));

TEST(ScenarioTest, FaultsStrikeInTheMiddleOfChanges) {
  int in_switches = 0, felt = 0;
  for (std::uint64_t seed = kSeeds + 1; seed <= kSeeds + 400; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    if (scenario.session.replan.collectives == 0) continue;
    const Outcome outcome = play(scenario);
    EXPECT_EQ(outcome.broken, "") << describe(scenario) << "again: riffle sim --seed " << seed;
    in_switches += outcome.faults_in_switches;
    felt += outcome.faults_in_switches > 0 && outcome.failed_nodes > 0;
  }
  EXPECT_GE(in_switches, 4);
  EXPECT_GE(felt, 2);
}

// The simulator would notice: an engine that frees the memory of a partial sum before it is added
// gives wrong sums only if another frame comes at the wrong moment.
TEST(ScenarioTest, APlantedBugIsFound) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario scenario = draw_scenario(seed);
    scenario.session.engine.plants_early_release = true;
    const Outcome outcome = play(scenario);
    found += outcome.broken.find(" is ") != std::string::npos ||
             outcome.broken.find("other bits") != std::string::npos;
  }
  EXPECT_GE(found, 3);
}

// Connect, one exact all-reduce and close with 1,024 nodes in 16 racks; one of them sleeps a while.
TEST(ScenarioTest, AThousandNodes) {
  Scenario s;
  s.seed = 1024;
  s.fabric = even_fabric(1024, 10'000'000);
  s.fabric.racks.assign(16, {"", 160'000'000, 160'000'000});
  for (int n = 0; n < 1024; ++n) s.fabric.nodes[n].rack = n / 64;
  s.network.tick_ns = 10'000;
  s.network.early_headers = false;
  s.session.engine.chunk_bytes = 16 << 10;
  s.session.engine.piece_bytes = 16 << 10;
  s.session.engine.max_chunks = 2;
  s.session.engine.max_operations = 2;
  s.session.engine.has_blocks = false;
  PlanOptions options;
  options.max_lanes = 1;
  options.only = "racks";
  s.plans = plan(s.fabric, 16 << 10, options)->plans;
  s.calls = {{.type = DataType::kInt32, .count = 4096}};
  s.faults = {
      {.kind = Fault::Kind::kPause, .when_ns = 1'000'000, .node = 333, .length_ns = 100'000'000}};
  const Outcome outcome = play(s);
  EXPECT_EQ(outcome.broken, "");
  EXPECT_EQ(outcome.calls, 1024u);
}

TEST(ScenarioTest, TheSameSeedGivesTheSameRun) {
  for (const std::uint64_t seed : {3u, 77u}) {
    const Scenario scenario = draw_scenario(seed);
    const Outcome a = play(scenario), b = play(draw_scenario(seed));
    EXPECT_EQ(a.end_ns, b.end_ns);
    EXPECT_EQ(a.counters.events, b.counters.events);
    EXPECT_EQ(a.calls, b.calls);
  }
}

}  // namespace
}  // namespace riffle::sim::scenarios_test
