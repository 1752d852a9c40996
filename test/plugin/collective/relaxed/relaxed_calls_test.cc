// Relaxed modes from end to end in one process: eight nodes agree on ds_sync, average within
// groups, keep the sums, and go back to exact sums together, whatever goes wrong on one of them.
#include "plugin/collective/relaxed/relaxed_calls.h"
#include "test/sanitized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "test/modes/relaxed_job.h"

namespace riffle::relaxed_calls_test {
namespace {

using testing::kNodes;
using testing::RelaxedJob;

const std::uint64_t kRelaxedElements = 5000 + 2500 + 1900 + 2048;  // of a step

TEST(RelaxedCalls, BeginAfterTheWarmUpAndFollowTheRule) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    if (kIsSanitized && seed > 1) break;
    RelaxedJob::Options options;
    options.seed = seed;
    RelaxedJob job(options);
    ASSERT_EQ(job.run(60), "") << seed;
    ASSERT_EQ(job.changes.size(), 1u);
    EXPECT_EQ(job.changes[0].mode, SyncMode::kDsSync);
    EXPECT_GT(job.relaxed_elements(), 45 * kRelaxedElements);
    EXPECT_GT(job.counts(3).full_calls, 20u);
    EXPECT_LT(job.counts(3).full_calls, 50u);
    EXPECT_EQ(job.counts(3).doubts, 0u);
    EXPECT_EQ(job.counts(3).mismatches, 0u);
    EXPECT_LT(job.worst_error(), 1e-6);
  }
}

// Without any step over all nodes the groups alone keep the nodes together.
TEST(RelaxedCalls, NeedNoFullSteps) {
  RelaxedJob::Options options;
  options.settings.full_every = 0;
  options.chunk_bytes = 4500;  // no whole cache lines
  RelaxedJob job(options);
  ASSERT_EQ(job.run(60), "");
  EXPECT_EQ(job.counts(0).full_calls, 0u);
  EXPECT_GT(job.relaxed_elements(), 45 * kRelaxedElements);
}

// The network's plan changes while a mode runs, between two segments of a call too, and may have
// one group of all nodes for a while. Sums look exact then, but states go on growing, and what
// follows counts from them.
TEST(RelaxedCalls, GroupsThatBecomeAllNodesForAWhileKeepTheStates) {
  RelaxedJob job;
  job.meets_all = [](std::uint64_t step, std::uint64_t lane) {
    if (step == 0) return lane >= 3;
    if (step == 4) return lane < 2;
    return step < 4 || (step >= 17 && step < 20);
  };
  ASSERT_EQ(job.run(60), "");
  ASSERT_EQ(job.changes.size(), 1u);
  EXPECT_GT(job.relaxed_elements(), 45 * kRelaxedElements);
  EXPECT_EQ(job.counts(3).mismatches, 0u);
  EXPECT_LT(job.worst_error(), 1e-6);
}

TEST(RelaxedCalls, ANodeThatIsNotSureOfACallKeepsItsOwnAndAllGoExact) {
  RelaxedJob job;
  ASSERT_EQ(job.run(30), "");
  ASSERT_EQ(job.changes.size(), 1u);
  job.lost = {{5, 31, 1}, {5, 31, 2}};
  ASSERT_EQ(job.run(2), "") << "the others average without it";
  EXPECT_EQ(job.counts(5).doubts, 2u);
  EXPECT_EQ(job.counts(5).mismatches, 0u);
  // The end: one more step, over all nodes; from then on all sums are exact.
  for (int i = 0; i < 40 && job.changes.size() < 2; ++i) ASSERT_EQ(job.run(1), "");
  ASSERT_EQ(job.changes.size(), 2u);
  EXPECT_EQ(job.changes[1].mode, SyncMode::kExact);
  EXPECT_NE(job.changes[1].cause.find("events were lost"), std::string::npos)
      << job.changes[1].cause;
  const std::uint64_t full = job.counts(0).full_calls;
  ASSERT_EQ(job.run(20), "");
  EXPECT_GE(job.counts(0).full_calls, full);
  for (int i = 0; i < 40 && job.changes.size() < 3; ++i) ASSERT_EQ(job.run(1), "");
  ASSERT_EQ(job.changes.size(), 3u) << "after a pause it begins again";
}

TEST(RelaxedCalls, WithoutAProfilerOnOneNodeNothingBegins) {
  RelaxedJob job;
  job.without_profiler = {6};
  ASSERT_EQ(job.run(40), "");
  EXPECT_TRUE(job.changes.empty());
  EXPECT_EQ(job.relaxed_elements(), 0u);
}

TEST(RelaxedCalls, CallsThatChangeEndTheModeAtTheSameCallEverywhere) {
  RelaxedJob job;
  ASSERT_EQ(job.run(30), "");
  ASSERT_GT(job.relaxed_elements(), 0u);
  const std::uint64_t before = job.relaxed_elements();
  job.change_calls({{0, 0, 5000, 5000, 5000}, {1, 0, 2400, 2400, 2400}, {2, 0, 100, 100, 100}});
  ASSERT_EQ(job.run(3), "");
  for (int r = 0; r < kNodes; ++r) EXPECT_EQ(job.counts(r).deviations, 1u) << r;
  EXPECT_LE(job.relaxed_elements(), before + kRelaxedElements);
  // In time it begins anew, with the new calls.
  ASSERT_EQ(job.run(40), "");
  ASSERT_GE(job.changes.size(), 3u);
  EXPECT_EQ(job.changes.back().mode, SyncMode::kDsSync);
  EXPECT_GT(job.relaxed_elements(), before + 10 * 7400);
}

// Two buckets change places, and their calls look alike: but where one ended the other has more.
TEST(RelaxedCalls, CallsInThePlacesOfOthersArePassedOnWhole) {
  for (const SyncMode mode : {SyncMode::kDsSync, SyncMode::kShadowSync}) {
    RelaxedJob::Options options;
    options.settings.mode = mode;
    options.settings.full_every = 0;
    options.calls = {{0, 0, 2500, 4400, 2500},
                     {0, 2500, 1900, 4400, 2500},
                     {1, 0, 2500, 5000, 2500},
                     {1, 2500, 2500, 5000, 2500}};
    RelaxedJob job(options);
    ASSERT_EQ(job.run(30), "") << name_of(mode);
    ASSERT_EQ(job.changes.size(), 1u);
    const std::uint64_t relaxed = job.relaxed_elements();
    std::rotate(options.calls.begin(), options.calls.begin() + 2, options.calls.end());
    job.move_buckets(options.calls);
    ASSERT_EQ(job.run(1), "") << name_of(mode);
    ASSERT_EQ(job.changes.size(), 1u);
    EXPECT_EQ(job.relaxed_elements(), relaxed + 9400) << "in the mode still";
    for (int r = 0; r < kNodes; ++r) EXPECT_EQ(job.counts(r).doubts, 4u) << r;
    for (int i = 0; i < 40 && job.changes.size() < 2; ++i) ASSERT_EQ(job.run(1), "");
    ASSERT_EQ(job.changes.size(), 2u);
    EXPECT_EQ(job.changes[1].mode, SyncMode::kExact);
  }
}

TEST(RelaxedCalls, NotFiniteForAllMembersAndForgottenAfterwards) {
  RelaxedJob job;
  ASSERT_EQ(job.run(30), "");
  job.not_finite = {{2, 30, 0}, {7, 33, 4}};
  ASSERT_EQ(job.run(30), "");
  std::uint64_t segments = 0;
  for (int r = 0; r < kNodes; ++r) segments += job.counts(r).not_finite;
  EXPECT_GE(segments, 2u * 2);
  EXPECT_LE(segments, 2u * kNodes);
  EXPECT_EQ(job.changes.size(), 1u);
}

TEST(RelaxedCalls, TooMuchStateStaysExact) {
  RelaxedJob::Options options;
  options.settings.state_limit_bytes = 40'000;  // 45,792 for the state alone
  RelaxedJob job(options);
  ::testing::internal::CaptureStderr();
  const std::string outcome = job.run(40);
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(outcome, "");
  EXPECT_TRUE(job.changes.empty());
  EXPECT_EQ(job.relaxed_elements(), 0u);
  EXPECT_NE(said.find("RIFFLE_STATE_LIMIT_MB"), std::string::npos) << said;
}

// NCCL refused for want of staging memory does not ask for results, which alone would free some.
Result<std::shared_ptr<RelaxedRun>> run_of_calls_of(std::uint64_t elements,
                                                    std::uint64_t plan_chunk_bytes) {
  KnownCalls calls;
  for (std::uint64_t i = 0; i < 12; ++i) {
    calls.pieces.push_back({.comm_id = 1,
                            .first = i * elements,
                            .valid = elements,
                            .total = 12 * elements,
                            .count = elements,
                            .type = static_cast<int>(DataType::kFloat32)});
  }
  calls.digest = 5;
  RelaxedOptions options;
  options.settings.state_limit_bytes = 1 << 30;
  options.size = kNodes;
  options.chunk_bytes = 64 << 10;
  options.staging_bytes = 64 << 10;
  return RelaxedRun::make({.mode = SyncMode::kDsSync, .layout = 5, .chunk_bytes = plan_chunk_bytes},
                          calls, options);
}

TEST(RelaxedCalls, HaveRoomForAllThatNcclHasUnderWay) {
  // Chunks of 64 KiB, or of 32 as long as calls have no more than 64 of them.
  for (const auto& [elements, plan_chunk_bytes, wanted] :
       {std::tuple{40'000U, 0U, 3U}, {40'000U, 32U << 10, 5U}, {1'000'000U, 32U << 10, 64U}}) {
    const auto run = run_of_calls_of(elements, plan_chunk_bytes);
    ASSERT_TRUE(run.is_ok()) << run.status().message();
    const std::uint32_t segments = (*run)->position(0).segments;
    EXPECT_EQ(segments, wanted) << elements;
    for (int i = 0; i < 8; ++i) EXPECT_NE((*run)->take(segments), RelaxedRun::kNone) << i;
  }
  const auto too_long = run_of_calls_of(1'048'576, 0);
  ASSERT_FALSE(too_long.is_ok());
  EXPECT_NE(too_long.status().message().find("65 chunks, accepted at most 64"), std::string::npos)
      << too_long.status().message();
}

TEST(RelaxedCalls, MomentumKeepsTheMean) {
  RelaxedJob::Options options;
  options.settings.momentum = 0.9;
  RelaxedJob job(options);
  ASSERT_EQ(job.run(60), "");
  EXPECT_GT(job.relaxed_elements(), 45 * kRelaxedElements);
  EXPECT_GT(job.most_apart(), 0.01);
}

// Answers come at once, rounds follow behind; nothing is lost, and the full steps find all nodes
// where the sum of all gradients puts them.
TEST(RelaxedCalls, ShadowSyncAnswersAtOnceAndLosesNothing) {
  for (const std::uint64_t shadow_steps : {1, 3}) {
    RelaxedJob::Options options;
    options.settings.mode = SyncMode::kShadowSync;
    options.settings.shadow_steps = shadow_steps;
    options.settings.full_every = 20;
    options.calls = {{1, 0, 1500, 2400, 1500}, {1, 1500, 900, 2400, 1500}};
    RelaxedJob job(options);
    ASSERT_EQ(job.run(80), "") << shadow_steps;
    ASSERT_EQ(job.changes.size(), 1u);
    EXPECT_GT(job.relaxed_elements(), 60u * 2400);
    EXPECT_GT(job.counts(2).rounds, 2 * 60 / shadow_steps - 10);
    EXPECT_GE(job.counts(2).longest_gap, 1u);
    EXPECT_LE(job.counts(2).longest_gap, shadow_steps);
    const RelaxedTotals totals = job.totals(2);
    EXPECT_EQ(totals.rounds, job.counts(2).rounds);
    EXPECT_GT(totals.corrections, totals.rounds * 9 / 10);
    EXPECT_LE(totals.corrections, totals.rounds);
    EXPECT_GE(totals.gap_steps, totals.corrections);
    EXPECT_LE(totals.gap_steps, totals.corrections * totals.longest_gap);
    // Without any round the variance would reach that of 20 steps' own gradients.
    EXPECT_LT(job.most_apart(), 20.0 * (kNodes - 1) / kNodes);
    EXPECT_GT(job.most_apart(), 0.1);
  }
}

constexpr ShadowVariant kVariants[] = {ShadowVariant::kDelta, ShadowVariant::kInterpolation,
                                       ShadowVariant::kBmuf, ShadowVariant::kEasgd,
                                       ShadowVariant::kFir};

RelaxedJob::Options shadow_options(ShadowVariant variant, std::uint64_t shadow_steps) {
  RelaxedJob::Options options;
  options.settings.mode = SyncMode::kShadowSync;
  options.settings.shadow = {.variant = variant, .pull = 0.4, .follow = 0.7};
  options.settings.shadow_steps = shadow_steps;
  options.settings.full_every = 20;
  return options;
}

// Every rule gives what its recursion says, by a simulation in double precision
// (shadow_reference.h), with steps over all nodes in between and one at the mode's end.
TEST(RelaxedCalls, ShadowRulesFollowTheirRecursions) {
  for (const ShadowVariant variant : kVariants) {
    for (const std::uint64_t shadow_steps : {1, 3}) {
      if (kIsSanitized && shadow_steps == 1) continue;
      RelaxedJob::Options options = shadow_options(variant, shadow_steps);
      options.calls = {{0, 0, 1700, 1700, 1700}, {2, 0, 100, 100, 100}, {3, 0, 1024, 1024, 1024}};
      RelaxedJob job(options);
      ASSERT_EQ(job.run(60), "") << name_of(variant) << shadow_steps;
      ASSERT_EQ(job.changes.size(), 1u);
      EXPECT_GT(job.relaxed_elements(), 45u * 2724) << name_of(variant);
      EXPECT_GT(job.counts(3).corrections, 2 * 45 / shadow_steps - 10) << name_of(variant);
      EXPECT_EQ(job.counts(3).mismatches, 0u) << name_of(variant);
      EXPECT_LT(job.worst_error(), 1e-6) << name_of(variant);
    }
  }
}

// FIR has no feedback: with rounds of so many steps nodes differ by those of two rounds at most.
TEST(RelaxedCalls, FirIsBoundedWithRoundsOfAnyLength) {
  for (const std::uint64_t shadow_steps : {1, 4, 16}) {
    RelaxedJob::Options options = shadow_options(ShadowVariant::kFir, shadow_steps);
    options.settings.full_every = 0;
    options.calls = {{3, 0, 2048, 2048, 2048}};
    RelaxedJob job(options);
    ASSERT_EQ(job.run(150), "") << shadow_steps;
    EXPECT_GT(job.counts(0).corrections, 100 / shadow_steps);
    const double variance = 16.0 / 12 * (kNodes - 1) / kNodes;  // of a step's gradients
    EXPECT_LT(job.most_apart(), 1.1 * 2 * static_cast<double>(shadow_steps) * variance);
    EXPECT_GT(job.most_apart(), 0.8 * static_cast<double>(shadow_steps) * variance);
  }
}

// A centre that follows is the same on all nodes to the bit, whose calls come at their own times,
// also where one of them was not sure of its calls.
TEST(RelaxedCalls, CentresAreTheSameBitsOnAllNodes) {
  for (const ShadowVariant variant : {ShadowVariant::kBmuf, ShadowVariant::kEasgd}) {
    RelaxedJob::Options options = shadow_options(variant, 3);
    options.interval = 30;  // so that the mode outlives the doubt for a while
    options.calls = {{0, 0, 1500, 1500, 1500}, {3, 0, 1048, 1048, 1048}};
    RelaxedJob job(options);
    ASSERT_EQ(job.run(70), "");
    ASSERT_EQ(job.changes.size(), 1u);
    const std::uint64_t doubted = job.steps();
    for (std::uint64_t step = doubted; step < doubted + 4; ++step) job.lost.insert({5, step, 0});
    ASSERT_EQ(job.run(4), "");
    int compared = 0;
    for (int i = 0; i < 7; ++i) {
      ASSERT_EQ(job.run(1), "");
      if (job.relaxed_run(0) == nullptr) break;
      for (std::size_t p = 0; p < options.calls.size(); ++p) {
        const RelaxedRun::Position& first = job.relaxed_run(0)->position(p);
        // Where a round has just begun everywhere, all nodes are through with the one before.
        bool has_begun = true;
        for (int r = 0; r < kNodes; ++r) {
          has_begun &= job.relaxed_run(r)->position(p).round != RelaxedRun::kNone;
        }
        for (int r = 1; r < kNodes && has_begun; ++r) {
          const RelaxedRun::Position& other = job.relaxed_run(r)->position(p);
          ++compared;
          EXPECT_EQ(other.round_step, first.round_step);
          EXPECT_EQ(std::memcmp(other.second, first.second, first.piece.valid * sizeof(float)), 0)
              << name_of(variant) << r;
          EXPECT_TRUE(std::any_of(first.second, first.second + first.piece.valid,
                                  [](float x) { return x != 0; }));
        }
      }
    }
    EXPECT_GE(compared, 2 * (kNodes - 1)) << name_of(variant);
    EXPECT_GE(job.counts(5).doubts, 4u);
  }
}

// What a node kept to itself while it was not sure is not lost: the last step finds all nodes where
// the sum of all gradients puts them.
TEST(RelaxedCalls, ShadowSyncLosesNothingToDoubts) {
  for (const ShadowVariant variant : {ShadowVariant::kDelta, ShadowVariant::kFir}) {
    RelaxedJob::Options options = shadow_options(variant, 1);
    options.settings.full_every = 0;
    options.calls = {{1, 0, 2500, 4400, 2500}, {1, 2500, 1900, 4400, 2500}};
    RelaxedJob job(options);
    ASSERT_EQ(job.run(30), "");
    ASSERT_EQ(job.changes.size(), 1u);
    job.lost = {{5, 31, 0}, {5, 31, 1}, {2, 31, 1}, {5, 32, 0}};
    for (int i = 0; i < 20 && job.changes.size() < 2; ++i) {
      ASSERT_EQ(job.run(1), "") << name_of(variant);
    }
    ASSERT_EQ(job.changes.size(), 2u);
    ASSERT_EQ(job.run(20), "") << name_of(variant);
    EXPECT_EQ(job.counts(0).full_calls, 2u) << name_of(variant);
    EXPECT_EQ(job.counts(5).doubts, 3u);
  }
}

TEST(RelaxedCalls, ShadowSyncEndsWithRoundsUnderWayAndBeginsAnew) {
  for (const ShadowVariant variant : kVariants) {
    RelaxedJob::Options options = shadow_options(variant, 2);
    options.calls = {{0, 0, 1700, 1700, 1700}, {2, 0, 100, 100, 100}, {3, 0, 1024, 1024, 1024}};
    RelaxedJob job(options);
    ASSERT_EQ(job.run(30), "") << name_of(variant);
    const std::uint64_t before = job.relaxed_elements();
    ASSERT_GT(before, 0u);
    job.change_calls({{0, 0, 1024, 1024, 1024}, {1, 0, 1700, 1700, 1700}});
    ASSERT_EQ(job.run(6), "") << name_of(variant);
    for (int r = 0; r < kNodes; ++r) EXPECT_EQ(job.counts(r).deviations, 1u) << r;
    ASSERT_EQ(job.run(40), "") << name_of(variant);
    EXPECT_GT(job.relaxed_elements(), before + 8 * 2724u) << name_of(variant);
  }
}

}  // namespace
}  // namespace riffle::relaxed_calls_test
