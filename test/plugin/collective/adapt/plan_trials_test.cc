// When plans are tried, in which order, and which one is kept.
#include "plugin/collective/adapt/plan_trials.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plugin/collective/base/collective_count.h"

namespace riffle::plan_trials_test {
namespace {

constexpr std::uint64_t kBytes = 1'000'000;  // predictions are for

Weighed candidate(const char* name, double predicted_us, int nodes) {
  Weighed w;
  w.choice.plans.name = name;
  w.choice.plans.lanes = {GroupPlan{nodes, {}}};  // only told apart
  w.choice.time_us = predicted_us;
  return w;
}

PlanTime took(double us, std::uint64_t processor = 20) {
  return {us / static_cast<double>(kBytes), processor};
}

bool is_due(PlanTrials& trials, const PlanTime& time, double expected, double first,
            bool is_plausible = false) {
  return trials.is_due(time, expected / kBytes, first / kBytes, false, is_plausible);
}

TEST(PlanTrials, DueWhereAllReducesTakeLongerThanPredicted) {
  PlanTrials trials;
  EXPECT_FALSE(is_due(trials, took(1300), 1000, 1000));
  EXPECT_TRUE(trials.is_suspicious());
  EXPECT_FALSE(is_due(trials, took(1200), 1000, 1000)) << "not in a row";
  EXPECT_FALSE(is_due(trials, took(1300), 1000, 1000));
  EXPECT_TRUE(is_due(trials, took(1300), 1000, 1000));
}

TEST(PlanTrials, LaggingWhereAllReducesTakeALittleLongerForSomeTime) {
  PlanTrials trials;
  for (const double us : {1100.0, 1100.0, 1020.0, 1100.0, 1100.0}) {
    EXPECT_FALSE(is_due(trials, took(us), 1000, 1000));
    EXPECT_FALSE(trials.is_lagging());
  }
  EXPECT_FALSE(is_due(trials, took(1100, 90), 1000, 1000));
  EXPECT_FALSE(trials.is_lagging()) << "a node lacks processor";
  for (int i = 0; i < PlanTrials::kLagIntervals; ++i) is_due(trials, took(1100), 1000, 1000);
  EXPECT_TRUE(trials.is_lagging());
}

TEST(PlanTrials, NeverDueWhereANodeLacksProcessorOrNothingWasMeasured) {
  PlanTrials trials;
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(is_due(trials, took(3000, 90), 1000, 1000));
    EXPECT_FALSE(is_due(trials, PlanTime(), 1000, 1000));
    EXPECT_FALSE(is_due(trials, took(3000), 0, 0)) << "nothing was predicted";
  }
}

TEST(PlanTrials, NotDueWhereRatesWereRaisedForNothing) {
  PlanTrials trials;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(is_due(trials, took(1050), 800, 1000));
}

TEST(PlanTrials, AnExplanationIsDoubtedAfterSomeTime) {
  PlanTrials trials;
  EXPECT_FALSE(is_due(trials, took(1000), 1000, 1000)) << "what connect knew was right";
  int intervals = 1;
  while (!is_due(trials, took(3000), 3000, 1000)) ASSERT_LE(++intervals, 100);
  EXPECT_EQ(intervals, PlanTrials::kShortestPause);
}

TEST(PlanTrials, ASlowNodeIsDoubtedMoreRarely) {
  PlanTrials trials;
  EXPECT_FALSE(is_due(trials, took(1000), 1000, 1000)) << "what connect knew was right";
  int intervals = 1;
  while (!is_due(trials, took(3000), 3000, 1000, true)) ASSERT_LE(++intervals, 1000);
  EXPECT_EQ(intervals, PlanTrials::kPlausible * PlanTrials::kShortestPause);
}

TEST(PlanTrials, ASecondSlowNodeForOneIntervalIsNoReasonForDoubt) {
  PlanTrials trials;
  EXPECT_FALSE(is_due(trials, took(1000), 1000, 1000)) << "what connect knew was right";
  for (int i = 0; i < 3 * PlanTrials::kShortestPause; ++i) {
    EXPECT_FALSE(is_due(trials, took(3000), 3000, 1000, i % 20 != 19)) << i;
  }
}

TEST(PlanTrials, IntervalsThatSayNothingTakeNoDoubtAway) {
  PlanTrials trials;
  EXPECT_FALSE(is_due(trials, took(1000), 1000, 1000)) << "what connect knew was right";
  for (int i = 1; i < PlanTrials::kShortestPause; ++i) {
    EXPECT_FALSE(is_due(trials, took(3000), 3000, 1000)) << i;
    EXPECT_FALSE(is_due(trials, PlanTime(), 3000, 1000)) << i;
    EXPECT_FALSE(is_due(trials, took(3000, 90), 3000, 1000)) << i << ", a node lacks processor";
  }
  EXPECT_TRUE(is_due(trials, took(3000), 3000, 1000));
}

// It would begin with nothing to compare with.
TEST(PlanTrials, AnIntervalThatSaysNothingIsNotDue) {
  PlanTrials trials;
  for (int i = 1; i < PlanTrials::kShortestPause; ++i) is_due(trials, took(1000), 1000, 1000);
  for (int i = 0; i < PlanTrials::kShortestPause * PlanTrials::kShortestPause; ++i) {
    is_due(trials, took(3000), 3000, 1000, true);
  }
  EXPECT_FALSE(is_due(trials, PlanTime(), 3000, 1000));
  EXPECT_FALSE(is_due(trials, took(3000, 90), 3000, 1000)) << "a node lacks processor";
  EXPECT_TRUE(is_due(trials, took(3000), 3000, 1000));
}

TEST(PlanTrials, WhatNeverWasRightIsDoubtedAtOnce) {
  PlanTrials trials;
  EXPECT_FALSE(is_due(trials, took(3000), 1000, 1000)) << "may be a single slow interval";
  EXPECT_TRUE(is_due(trials, took(3000), 3000, 1000)) << "an explanation, but from the beginning";
}

// As long as it is one: two nodes that stand in each other's rack do not become slow at once.
TEST(PlanTrials, OneSlowNodeIsNoReasonForDoubt) {
  PlanTrials trials;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(is_due(trials, took(3000), 3000, 1000, true)) << i;
  EXPECT_TRUE(is_due(trials, took(3000), 3000, 1000, false));
}

TEST(PlanTrials, TheFastestIsKept) {
  PlanTrials trials;
  trials.begin(candidate("old", 1000, 1), took(2000),
               {candidate("a", 500, 2), candidate("b", 500, 3), candidate("c", 500, 4)}, kBytes);
  ASSERT_EQ(trials.next()->choice.plans.name, "a");
  EXPECT_FALSE(trials.took(took(1800), false)) << "the old plan ran, too";
  EXPECT_TRUE(trials.took(took(1500), true));
  ASSERT_EQ(trials.next()->choice.plans.name, "b");
  EXPECT_TRUE(trials.took(took(4000), false)) << "slower than both: hopeless";
  ASSERT_EQ(trials.next()->choice.plans.name, "c");
  EXPECT_TRUE(trials.took(took(1700), true));
  EXPECT_FALSE(trials.is_decided());
  ASSERT_EQ(trials.next()->choice.plans.name, "a");
  EXPECT_TRUE(trials.is_decided());
  EXPECT_EQ(trials.fastest().choice.plans.name, "a");
  trials.end();
  EXPECT_FALSE(trials.is_running());
}

// `old_us` of the plan before, of which 1000 are predicted; the other one takes 3000 and more.
bool leaves_error(PlanTrials& trials, double old_us, double other_us = 3000) {
  trials.begin(candidate("old", 1000, 1), took(old_us), {candidate("other", 900, 2)}, kBytes);
  trials.next();
  trials.took(took(other_us), true);
  if (trials.next() != nullptr) {
    trials.took(took(old_us), true);
    EXPECT_EQ(trials.next(), nullptr);
  }
  const bool leaves = trials.leaves_error();
  trials.end();
  return leaves;
}

TEST(PlanTrials, AnErrorThatNoPlanEndsIsLeftOnce) {
  PlanTrials trials;
  EXPECT_FALSE(leaves_error(trials, 1200)) << "it is not wrong";
  EXPECT_FALSE(leaves_error(trials, 2000, 1500)) << "the other one is faster";
  EXPECT_TRUE(leaves_error(trials, 2000));
  EXPECT_FALSE(leaves_error(trials, 2000)) << "known";
  EXPECT_FALSE(leaves_error(trials, 2400)) << "hardly worse";
  EXPECT_TRUE(leaves_error(trials, 2600, 9000));
}

TEST(PlanTrials, APlanThatTakesWhatWasPredictedEndsTheTrial) {
  PlanTrials trials;
  trials.begin(candidate("old", 1000, 1), took(2000),
               {candidate("right", 900, 2), candidate("b", 500, 3)}, kBytes);
  trials.next();
  EXPECT_TRUE(trials.took(took(950), true));
  EXPECT_FALSE(trials.is_open());
  EXPECT_EQ(trials.next(), nullptr) << "it is in force already";
  EXPECT_FALSE(trials.is_former_fastest());
}

TEST(PlanTrials, WhereAnotherPlanLagsAsMuchTheTrialEnds) {
  PlanTrials trials;
  const std::vector<Weighed> others = {candidate("ring", 1010, 2), candidate("tree", 1020, 3)};
  trials.begin(candidate("old", 1000, 1), took(1200), others, kBytes);
  trials.next();
  EXPECT_TRUE(trials.took(took(1215), true));
  EXPECT_EQ(trials.next()->choice.plans.name, "old");
  EXPECT_TRUE(trials.is_decided());

  trials.begin(candidate("old", 1000, 1), took(1200), others, kBytes);
  trials.next();
  EXPECT_TRUE(trials.took(took(1180), true));
  EXPECT_EQ(trials.next()->choice.plans.name, "tree") << "it lags less";

  trials.begin(candidate("old", 1000, 1), took(2000), others, kBytes);
  trials.next();
  EXPECT_TRUE(trials.took(took(2020), true));
  EXPECT_EQ(trials.next()->choice.plans.name, "tree") << "the model is wrong, not only a rate";
}

TEST(PlanTrials, AnExplanationByLinksThatWereNeverRightDoesNotEndTheTrial) {
  for (const bool is_refused : {false, true}) {
    PlanTrials trials;
    EXPECT_TRUE(is_due(trials, took(2050), 2000, 1000));
    trials.begin(candidate("old", 2000, 1), took(2050),
                 {candidate("raised", 1900, 2), candidate("direct", 1000, 3)}, kBytes);
    trials.next();
    EXPECT_TRUE(trials.took(took(1950), true)) << "lags alike, by rates that are in doubt";
    EXPECT_TRUE(trials.is_open());
    ASSERT_EQ(trials.next()->choice.plans.name, "direct");
    if (is_refused) {
      trials.refused();
    } else {
      EXPECT_TRUE(trials.took(took(2200), true));
    }
    trials.add({candidate("seen", 1500, 4), candidate("other", 1500, 5)});
    ASSERT_EQ(trials.next()->choice.plans.name, "seen");
    EXPECT_TRUE(trials.took(took(1550), true));
    EXPECT_EQ(trials.is_open(), is_refused);
  }
}

TEST(PlanTrials, ALittleFasterIsNotWorthAChange) {
  PlanTrials trials;
  trials.begin(candidate("old", 1000, 1), took(2000), {candidate("a", 1000, 2)}, kBytes);
  trials.next();
  EXPECT_TRUE(trials.took(took(1950), true));
  ASSERT_EQ(trials.next()->choice.plans.name, "old");
  EXPECT_TRUE(trials.is_former_fastest());
}

TEST(PlanTrials, OfEqualsTheOneThatAsksLessMayBeALittleFaster) {
  PlanTrials trials;
  trials.begin(candidate("direct", 1000, 2), took(1070), {candidate("ring", 1000, 3)}, kBytes,
               PlanTrials::kTieGain);
  EXPECT_EQ(trials.next()->choice.plans.name, "ring");
  EXPECT_TRUE(trials.took(took(1040), true));
  EXPECT_EQ(trials.next(), nullptr) << "the ring stays in force";
  EXPECT_EQ(trials.fastest().choice.plans.name, "ring");
}

TEST(PlanTrials, ATrialThatSeesNothingGoesBack) {
  PlanTrials trials;
  trials.begin(candidate("old", 1000, 1), took(2000),
               {candidate("a", 500, 2), candidate("b", 500, 3)}, kBytes);
  trials.next();
  for (int i = 1; i < PlanTrials::kBlind; ++i) EXPECT_FALSE(trials.took(PlanTime(), true)) << i;
  EXPECT_TRUE(trials.took(PlanTime(), true));
  ASSERT_EQ(trials.next()->choice.plans.name, "old");
  EXPECT_TRUE(trials.is_decided());
  EXPECT_EQ(trials.text().find("a "), std::string::npos) << trials.text();
}

TEST(PlanTrials, PlansThatAreTriedKeepThePlanForSmallSums) {
  constexpr std::uint64_t kSum = 32 << 20;
  const Fabric fabric = even_fabric(16, 400'000);
  const Result<PlanChoice> current = plan(fabric, kSum, {});
  ASSERT_TRUE(current);
  ASSERT_FALSE(current->plans.small.is_empty());
  const double measured_us = 10 * current->time_us;
  const std::vector<Weighed> plans =
      plans_to_try({}, fabric, fabric, current->plans, measured_us, kSum, {});
  ASSERT_FALSE(plans.empty());
  for (const Weighed& w : plans) {
    EXPECT_EQ(w.choice.plans.small, current->plans.small) << w.choice.plans.name;
  }
}

Weighed of_kind(const Fabric& fabric, const char* name, std::uint64_t bytes) {
  PlanOptions options;
  options.only = name;
  Result<PlanChoice> choice = plan(fabric, bytes, options);
  EXPECT_TRUE(choice) << choice.status().message();
  return {fabric, std::move(*choice), 0};
}

// Behind short queues every link looks slow while many flows meet, and a ring as slow as the rest.
TEST(PlanTrials, ARingIsTriedForWhatConnectKnew) {
  const Fabric fabric = even_fabric(8, 400'000), live = even_fabric(8, 100'000);
  const Weighed current = of_kind(fabric, "direct", 32 << 20);
  const std::vector<Weighed> plans = plans_to_try({}, fabric, live, current.choice.plans,
                                                  2 * current.choice.time_us, 32 << 20, {});
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(),
                          [](const Weighed& w) { return w.choice.plans.name == "ring"; }));
}

TEST(PlanTrials, InRacksTheNextBestPlanIsTriedFirst) {
  constexpr std::uint64_t kSum = 32 << 20;
  Fabric fabric = even_fabric(7, 100'000);
  fabric.racks = {{"a", 0, 0}, {"b", 116'000, 116'000}};
  for (std::size_t n = 3; n < 7; ++n) fabric.nodes[n].rack = 1;
  for (const std::size_t n : {0, 5}) {
    fabric.nodes[n].out_kbps = fabric.nodes[n].in_kbps = 400'000;
  }
  const Result<PlanChoice> current = plan(fabric, kSum, {});
  ASSERT_TRUE(current);
  const Candidate& second = current->candidates.at(1);
  ASSERT_LT(second.time_us, 1.05 * current->time_us);
  const std::vector<Weighed> plans =
      plans_to_try({}, fabric, fabric, current->plans, 2 * current->time_us, kSum, {});
  ASSERT_FALSE(plans.empty());
  EXPECT_EQ(plans.front().choice.plans.name, second.name);
  EXPECT_DOUBLE_EQ(plans.front().choice.time_us, second.time_us);
}

// Two racks of four, each behind an uplink of so much.
Fabric in_two_racks(std::int64_t uplink_kbps) {
  Fabric fabric = even_fabric(8, 400'000);
  fabric.racks = {{"a", uplink_kbps, uplink_kbps}, {"b", uplink_kbps, uplink_kbps}};
  for (std::size_t n = 4; n < 8; ++n) fabric.nodes[n].rack = 1;
  return fabric;
}

// The uplinks have half of what the first plan for racks was made for. Another one with that much
// or more explains it as little; one with less does, and a ring needs no explanation.
TEST(PlanTrials, ANetworkOnWhichAPlanShouldHaveTakenMuchLessIsNotTried) {
  constexpr std::uint64_t kSum = 32 << 20;
  const char* const kind = "racks";
  const Weighed wrong = of_kind(in_two_racks(200'000), kind, kSum);
  Weighed also_wrong = of_kind(in_two_racks(210'000), kind, kSum);
  Weighed right = of_kind(in_two_racks(100'000), kind, kSum);
  Weighed ring = of_kind(in_two_racks(200'000), "ring", kSum);
  const double took_us = right.choice.time_us;
  ASSERT_GT(took_us, PlanTrials::kRefuted * wrong.choice.time_us);
  const auto in_us = [&](double us) { return PlanTime{us / static_cast<double>(kSum), 20}; };
  Weighed current = of_kind(even_fabric(8, 400'000), "direct", kSum);

  PlanTrials trials;
  also_wrong.choice.plans.lanes.clear();  // only told apart
  trials.begin(current, in_us(0.9 * took_us), {wrong, also_wrong, ring, right}, kSum);
  trials.next();
  EXPECT_TRUE(trials.took(in_us(took_us), true));
  ASSERT_EQ(trials.next()->choice.plans.name, "ring");
  EXPECT_TRUE(trials.took(in_us(took_us), true));
  EXPECT_EQ(trials.next()->choice.plans.lanes, right.choice.plans.lanes);
}

// One slow node: a direct plan should take half of a ring's time.
TEST(PlanTrials, AFabricByWhichTheSlowerPlanWouldBeFasterIsContradicted) {
  Fabric fabric = even_fabric(8, 400'000);
  fabric.nodes[3].out_kbps = fabric.nodes[3].in_kbps = 100'000;
  const Weighed ring = of_kind(fabric, "ring", kBytes), direct = of_kind(fabric, "direct", kBytes);
  const double ring_us = ring.choice.time_us;
  ASSERT_GT(ring_us, 1.3 * direct.choice.time_us);
  struct Case {
    double direct_us;
    bool is_contradicted;
  };
  for (const auto& [direct_us, is_contradicted] :
       {Case{1.5 * ring_us, true}, {direct.choice.time_us, false}}) {
    PlanTrials trials;
    trials.begin(direct, took(direct_us), {ring}, kBytes);
    ASSERT_EQ(trials.next()->choice.plans.name, "ring");
    EXPECT_FALSE(trials.is_contradicted(kBytes)) << "nothing is known of the ring";
    EXPECT_TRUE(trials.took(took(1.02 * ring_us), true));
    EXPECT_EQ(trials.is_contradicted(kBytes), is_contradicted);
  }
}

TEST(PlanTrials, NicsThatOthersUseSayNothing) {
  std::vector<NodeRates> reports(2);
  for (NodeRates& r : reports) r.busy = {64 << 20, 2'000'000'000, 4};
  EXPECT_FALSE(plan_time(reports).is_shared);
  reports[1].others = 20;
  PlanTime time = plan_time(reports);
  EXPECT_TRUE(time.is_shared);
  PlanTrials trials;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(trials.is_due(time, time.us_per_byte / 2, time.us_per_byte / 2, false, false));
  }
}

TEST(PlanTrials, WhatIsFasterThoughItIsDisturbedIsKept) {
  for (const bool is_shared : {true, false}) {
    PlanTime time = took(1900, is_shared ? 20 : 90);
    time.is_shared = is_shared;
    PlanTrials trials;
    trials.begin(candidate("old", 1000, 1), took(2000), {candidate("a", 1000, 2)}, kBytes);
    trials.next();
    EXPECT_TRUE(trials.took(time, true));
    EXPECT_EQ(trials.next(), nullptr) << "it stays in force";

    time.us_per_byte = took(2100).us_per_byte;
    trials.begin(candidate("old", 1000, 1), took(2000), {candidate("a", 1000, 2)}, kBytes);
    trials.next();
    for (int i = 1; i < PlanTrials::kBlind; ++i) EXPECT_FALSE(trials.took(time, true)) << i;
    EXPECT_TRUE(trials.took(time, true)) << "it may be slow or disturbed";
    EXPECT_EQ(trials.next()->choice.plans.name, "old");
  }
}

TEST(PlanTrials, TheQuickestNodeSaysWhatAPlanTakes) {
  std::vector<NodeRates> reports(3);
  reports[0].busy = {64 << 20, 4'000'000'000, 4};
  reports[1].busy = {64 << 20, 2'000'000'000, 4};  // the others waited for it
  reports[2].busy = {1 << 20, 1'000'000, 8};       // too little
  reports[2].processor = 70;
  const PlanTime time = plan_time(reports);
  EXPECT_NEAR(time.us_per_byte, 2e6 / (64 << 20), 1e-9);
  EXPECT_EQ(time.processor, 70u);
}

TEST(PlanTrials, ShortSumsShowAPaceButJudgeNoPrediction) {
  std::vector<NodeRates> reports(1);
  reports[0].busy = {8 << 20, 400'000'000, 8};
  const PlanTime time = plan_time(reports);
  EXPECT_GT(time.us_per_byte, 0);
  EXPECT_EQ(time.for_trials().us_per_byte, 0);
  reports[0].busy.bursts = 2;
  EXPECT_EQ(plan_time(reports).for_trials().us_per_byte, time.us_per_byte);
  reports[0].busy.bursts = 64;
  EXPECT_EQ(plan_time(reports).us_per_byte, 0) << "mostly latency";
}

TEST(PlanTrials, WhatAJobComputesMeanwhileDoesNotHideThatProcessorIsLacking) {
  EXPECT_EQ(processor_percent(80, 100, 200), 80u);
  EXPECT_EQ(processor_percent(80, 0, 200), 40u);      // no all-reduce ended
  EXPECT_EQ(processor_percent(150, 100, 200), 100u);  // NET's work on the same thread
  EXPECT_EQ(processor_percent(80, 0, 0), 0u);
}

TEST(CollectiveProgress, CallsThatWereQueuedAheadCountWhenTheyRun) {
  CollectiveProgress progress;
  EXPECT_EQ(progress.update(100, 1), 1u);  // a hundred queued, the first one runs
  std::uint64_t count = 0;
  for (std::uint64_t op = 1; op <= 10 * CollectiveProgress::kOperations; ++op) {
    const std::uint64_t now = progress.update(100, op + 1);
    EXPECT_GE(now, count);
    count = now;
  }
  EXPECT_EQ(count, 11u);
  EXPECT_EQ(progress.update(101, 200), 12u);
}

}  // namespace
}  // namespace riffle::plan_trials_test
