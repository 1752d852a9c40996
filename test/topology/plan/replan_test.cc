// When another plan is worth the change (Hysteresis), replanning interval by replanning interval.
#include "topology/plan/replan.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace riffle::replan_test {
namespace {

constexpr std::int64_t kBase = 400'000;
constexpr std::uint64_t kBytes = 32 << 20;

TEST(Hysteresis, AClearGainChangesThePlanAndTheEvenPlanComesBack) {
  const Fabric even = even_fabric(8, kBase);
  Fabric contended = even;
  contended.nodes[3].out_kbps = contended.nodes[3].in_kbps = 100'000;
  const PlanSet first = plan(even, kBytes, {})->plans;
  Hysteresis hysteresis(even);
  EXPECT_FALSE(hysteresis.interval_ended(even));
  ASSERT_TRUE(hysteresis.interval_ended(contended));
  const Weighed down = *weigh(contended, first, kBytes, {});
  EXPECT_GT(down.gain(), 1.3);
  ASSERT_TRUE(hysteresis.is_worth_it(down));
  hysteresis.changed(down);
  for (int e = 0; e < 10; ++e) EXPECT_FALSE(hysteresis.interval_ended(contended));

  // The way back gains little; it takes rates that stay.
  const Weighed up = *weigh(even, down.choice.plans, kBytes, {});
  EXPECT_LT(up.gain(), Hysteresis::kClearGain);
  EXPECT_TRUE(hysteresis.interval_ended(even));
  EXPECT_FALSE(hysteresis.is_worth_it(up));
  for (int e = 0; e < Hysteresis::kSteadyIntervals; ++e)
    EXPECT_TRUE(hysteresis.interval_ended(even));
  EXPECT_TRUE(hysteresis.is_worth_it(up));
  EXPECT_EQ(up.choice.plans, first);
}

TEST(Hysteresis, TheCurrentPlanIsPricedAsTheBestOneIs) {
  const Fabric even = even_fabric(8, kBase);
  for (const std::int64_t message_ns : {0, 2'000, 200'000}) {
    PlanOptions options;
    options.message_ns = message_ns;
    const PlanSet current = plan(even, kBytes, options)->plans;
    EXPECT_DOUBLE_EQ(weigh(even, current, kBytes, options)->gain(), 1) << message_ns;
  }
}

struct Times {
  double exact_us, step_us;
};
Weighed beside_groups(std::int64_t node3_kbps, Times current, Times best) {
  Weighed w;
  w.fabric = even_fabric(8, kBase);
  w.fabric.nodes[3].in_kbps = node3_kbps;
  w.is_relaxed = true;
  w.former_us = current.exact_us;
  w.former_step_us = current.step_us;
  w.choice.time_us = best.exact_us;
  w.step_us = best.step_us;
  w.groups_gain = current.step_us / best.step_us;
  return w;
}

bool changes_in_one_interval(Hysteresis& hysteresis, const Weighed& w) {
  if (!hysteresis.interval_ended(w.fabric) || !hysteresis.is_worth_it(w)) return false;
  hysteresis.changed(w);
  return true;
}

int intervals_until_change(Hysteresis& hysteresis, const Weighed& w) {
  int intervals = 1;
  while (!changes_in_one_interval(hysteresis, w) && intervals < 1000) ++intervals;
  return intervals;
}

// A link that the groups do not use counts as risen, interval by interval, until they do again;
// groups gain by that, and so may the exact plan, which relaxed steps do not use.
TEST(Hysteresis, TheWayBackToGroupsOfAFasterNetworkIsTriedMoreAndMoreRarely) {
  for (const double gain : {1.0, 1.5}) {  // of the exact plan
    const Weighed slow = beside_groups(100'000, {2 * gain, 2.4}, {2, 0.9});
    const Weighed slower = beside_groups(85'000, {2.3, 1.1}, {2.3, 1});
    const Weighed back = beside_groups(kBase, {2, 0.8}, {2 / gain, 0.6});
    Hysteresis hysteresis(even_fabric(8, kBase));
    EXPECT_EQ(intervals_until_change(hysteresis, slow), 1);
    for (const int pause : {8, 16}) {
      EXPECT_EQ(intervals_until_change(hysteresis, back), pause);
      EXPECT_EQ(intervals_until_change(hysteresis, slow), 1);  // what is measured counts at once
    }
    // That what is left of the link becomes less in between does not make tries more frequent.
    for (int e = 0; e < 40; ++e) EXPECT_FALSE(hysteresis.interval_ended(slow.fabric));
    EXPECT_EQ(intervals_until_change(hysteresis, slower), 1);
    for (const int pause : {32, 64, 128, 128}) {
      EXPECT_EQ(intervals_until_change(hysteresis, back), pause);
      EXPECT_EQ(intervals_until_change(hysteresis, slow), 1);
    }
    // One that holds is a network that has become faster.
    EXPECT_EQ(intervals_until_change(hysteresis, back), 128);
    for (int e = 0; e < 128; ++e) EXPECT_FALSE(hysteresis.interval_ended(back.fabric));
    EXPECT_EQ(intervals_until_change(hysteresis, slow), 1);
    EXPECT_EQ(intervals_until_change(hysteresis, back), 8);
  }
}

TEST(Hysteresis, AChangeIsNoWayBackWhereStepsTakeLongerOrNoneRun) {
  const Weighed first = beside_groups(200'000, {2, 2}, {1, 1});
  const Weighed slower = beside_groups(kBase, {1, 1.1}, {0.8, 0.9});
  const Weighed hardly_slower = beside_groups(kBase, {1, 1.05}, {0.8, 0.9});
  const Weighed only_exact_is_slower = beside_groups(kBase, {2, 1}, {1, 0.9});
  Weighed not_running = only_exact_is_slower;
  not_running.is_relaxed = false;
  Weighed not_known = only_exact_is_slower;
  not_known.former_step_us = not_known.step_us = 0;
  for (const auto& [w, intervals] : {std::pair{slower, 1},
                                     {hardly_slower, 8},
                                     {only_exact_is_slower, 8},
                                     {not_running, 1},
                                     {not_known, 1}}) {
    Hysteresis hysteresis(even_fabric(8, kBase));
    ASSERT_EQ(intervals_until_change(hysteresis, first), 1);
    EXPECT_EQ(intervals_until_change(hysteresis, w), intervals);
  }
}

// What steps take on the way is the measure as long as nothing is worth a change, and no longer.
TEST(Hysteresis, ASlowDownOfGroupsThatHaveBecomeFasterIsNoWayBack) {
  const Weighed first = beside_groups(100'000, {2, 2}, {2, 1});
  const Weighed faster = beside_groups(kBase, {1, 0.5}, {1, 0.5});
  const Weighed slow = beside_groups(200'000, {1.5, 0.9}, {1, 0.8});
  for (const bool is_weighed : {false, true}) {
    for (const bool is_as_planned_again : {false, true}) {
      Hysteresis hysteresis(even_fabric(8, kBase));
      ASSERT_EQ(intervals_until_change(hysteresis, first), 1);
      if (is_weighed) {
        EXPECT_FALSE(changes_in_one_interval(hysteresis, faster));
      } else {
        EXPECT_TRUE(hysteresis.interval_ended(faster.fabric));
      }
      if (is_as_planned_again) {
        EXPECT_FALSE(hysteresis.interval_ended(first.fabric));
      }
      const int passed = is_as_planned_again ? 2 : 1;
      EXPECT_EQ(intervals_until_change(hysteresis, slow),
                is_weighed && !is_as_planned_again ? 1 : 8 - passed);
    }
  }
}

// Neither is it a try, nor is the fabric that it was for what steps are judged by.
TEST(Hysteresis, AChangeThatIsRefusedPromisesNothing) {
  const Weighed first = beside_groups(200'000, {2, 2}, {1, 1});
  const Weighed slow = beside_groups(100'000, {2, 2}, {1, 1});
  const Weighed still_slow = beside_groups(90'000, {2, 2}, {1, 1});
  Hysteresis hysteresis(even_fabric(8, kBase));
  ASSERT_EQ(intervals_until_change(hysteresis, first), 1);
  ASSERT_TRUE(hysteresis.interval_ended(slow.fabric));
  ASSERT_TRUE(hysteresis.is_worth_it(slow));
  hysteresis.changed(slow, false);
  EXPECT_LE(intervals_until_change(hysteresis, still_slow), 2);

  // A way back that is refused is still one to try: steps are judged by the plan in force.
  const Weighed back = beside_groups(kBase, {2, 1}, {1, 0.5});
  const Weighed still_back = beside_groups(300'000, {2, 1}, {1, 0.5});
  Hysteresis other(even_fabric(8, kBase));
  ASSERT_EQ(intervals_until_change(other, first), 1);
  for (int e = 0; e < 10; ++e) EXPECT_FALSE(other.interval_ended(first.fabric));
  other.changed(back, false);
  EXPECT_EQ(intervals_until_change(other, still_back), 8);
}

TEST(Hysteresis, ANervousNetworkIsFollowedMoreAndMoreRarely) {
  const Fabric even = even_fabric(8, kBase);
  Fabric contended = even;
  contended.nodes[3].out_kbps = contended.nodes[3].in_kbps = 100'000;
  Hysteresis hysteresis(even);
  PlanSet current = plan(even, kBytes, {})->plans;
  int changes = 0;
  for (int e = 0; e < 200; ++e) {
    const Fabric& now = e % 2 == 0 ? contended : even;
    if (!hysteresis.interval_ended(now)) continue;
    Weighed w = *weigh(now, current, kBytes, {});
    if (!hysteresis.is_worth_it(w)) continue;
    hysteresis.changed(w);
    current = w.choice.plans;
    ++changes;
  }
  EXPECT_GE(changes, 1);
  EXPECT_LE(changes, 25);
}

}  // namespace
}  // namespace riffle::replan_test
