// RIFFLE_ON_LOSS=continue in the simulator: nodes are killed, stopped, paused, links break, at any
// moment of 1,000 random scenarios; nobody hangs, no sum is wrong, no two sides go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lab/simulation/play.h"

namespace riffle::sim::losses_test {
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

// Eight equal nodes, 24 calls of 256 KiB, four at once: some 100 ms.
Scenario eight_nodes(std::uint64_t seed) {
  return surviving_job(even_fabric(8, 1'000'000), seed, 24, 64 << 10);
}

// One or two of eight: everybody else finishes, no later than 1 s and one and a half times what the
// calls under way take after the loss was noticed.
TEST(LossTest, OneOrTwoOfEightAreLostInMidCollective) {
  const Outcome undisturbed = play(eight_nodes(0));
  ASSERT_EQ(undisturbed.broken, "");
  std::uint64_t worst_ns = 0;
  int again = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    Scenario s = eight_nodes(seed);
    const std::size_t losses = 1 + seed % 2;
    int unplugged = 0;
    std::uint64_t noticed_ns = 0;
    while (s.faults.size() < losses) {
      static constexpr Fault::Kind kKinds[] = {Fault::Kind::kKill, Fault::Kind::kStop,
                                               Fault::Kind::kUnplug};
      Fault f;
      f.kind = kKinds[seed / 2 % 3];
      f.node = static_cast<int>(random() % 8);
      if (!s.faults.empty() && s.faults[0].node == f.node) continue;
      f.when_ns = 10'000'000 + random() % (undisturbed.end_ns - 20'000'000);
      // The second one of a pair, often while the first is being dealt with.
      if (!s.faults.empty() && random() % 2 == 0) {
        f.when_ns = s.faults[0].when_ns + random() % 10'000'000;
        ++again;
      }
      unplugged += f.kind == Fault::Kind::kUnplug;
      noticed_ns += f.kind == Fault::Kind::kStop ? s.network.peer_timeout_ns : s.network.detect_ns;
      s.faults.push_back(f);
    }
    std::sort(s.faults.begin(), s.faults.end(),
              [](const Fault& a, const Fault& b) { return a.when_ns < b.when_ns; });
    const Outcome outcome = play(s);
    EXPECT_EQ(outcome.broken, "") << describe(s);
    EXPECT_EQ(outcome.went_on, 8 - static_cast<int>(losses)) << describe(s);
    EXPECT_EQ(outcome.failed_nodes, unplugged) << describe(s);
    EXPECT_EQ(outcome.calls >= 24 * (8 - losses), true);
    // Four calls may have to be done again, at each loss.
    const double again_us = static_cast<double>(losses) * 1.5 * 4 * bound_us(s.fabric, 256 << 10);
    const std::uint64_t allowed_ns = undisturbed.end_ns * 11 / 10 + noticed_ns +
                                     losses * 1'000'000'000 +
                                     static_cast<std::uint64_t>(again_us * 1e3);
    EXPECT_LT(outcome.end_ns, allowed_ns) << describe(s);
    const std::uint64_t usual_ns = undisturbed.end_ns + noticed_ns;
    if (outcome.end_ns > usual_ns) worst_ns = std::max(worst_ns, outcome.end_ns - usual_ns);
  }
  std::printf("undisturbed %.1f ms; at most %.1f ms more than that and noticing the loss\n",
              static_cast<double>(undisturbed.end_ns) / 1e6, static_cast<double>(worst_ns) / 1e6);
  EXPECT_GT(again, 5);
}

// The simulator would notice a call that is reported before all have it.
TEST(LossTest, APlantedBugIsFound) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scenario s = draw_loss_scenario(seed);
    s.session.survivors.plants_early_end = true;
    found += !play(s).broken.empty();
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace riffle::sim::losses_test
