// RIFFLE_ON_LOSS=continue in the simulator: nodes are killed, stopped, paused, links break, at any
// moment of 1,000 random scenarios; nobody hangs, no sum is wrong, no two sides go on.
#include <gtest/gtest.h>

#include "test/sim/play.h"
#include "topology/plan/planner.h"

namespace riffle::sim {
namespace {

constexpr std::uint64_t kSeeds = 1000;
constexpr std::uint64_t kParts = 8;

class LossesTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(LossesTest, TheSurvivorsGoOn) {
  int survived = 0, went_on = 0, in_switches = 0;
  for (std::uint64_t seed = 1 + GetParam(); seed <= kSeeds; seed += kParts) {
    const Scenario scenario = draw_loss_scenario(seed);
    const Outcome outcome = play(scenario);
    EXPECT_EQ(outcome.broken, "") << describe(scenario) << "again: riffle sim --losses --seed "
                                  << seed;
    survived += outcome.losses_survived > 0;
    went_on += outcome.went_on;
    in_switches += outcome.faults_in_switches;
  }
  std::printf("%d of %d scenarios survived a loss, %d nodes went on, %d faults in switches\n",
              survived, static_cast<int>(kSeeds / kParts), went_on, in_switches);
  EXPECT_GT(survived, static_cast<int>(kSeeds / kParts / 4));
  EXPECT_GT(went_on, survived);
}

INSTANTIATE_TEST_SUITE_P(Part, LossesTest, ::testing::Range<std::uint64_t>(0, kParts));

}  // namespace
}  // namespace riffle::sim
