// The sparse mode from end to end in one process: nodes agree on it, sum sparsely, lose nothing,
// get the same bits, and go dense together whatever goes wrong on one of them.
#include <gtest/gtest.h>

#include "plugin/collective/sparse/sparse_frame.h"
#include "test/modes/sparse_calls_job.h"

namespace riffle::sparse_calls_test {
namespace {

using testing::SparseCallsJob;

constexpr int kLargeCalls = 4;  // of a step

TEST(SparseCalls, BeginAfterTheWarmUpAndLoseNothing) {
  for (int nodes = 2; nodes <= 8; ++nodes) {
    SparseCallsJob job({.nodes = nodes, .seed = static_cast<std::uint64_t>(nodes)});
    ASSERT_EQ(job.run(40), "") << nodes;
    ASSERT_EQ(job.changes.size(), 1u) << nodes;
    EXPECT_EQ(job.changes[0].mode, SyncMode::kSparse);
    EXPECT_GT(job.staged_calls(), 25u * kLargeCalls);
    EXPECT_GT(job.largest_residual(), 1);
    // Two in a hundred, up to a quarter more, and at least one per block.
    EXPECT_GT(job.last_density(), 0.01) << nodes;
    EXPECT_LT(job.last_density(), 0.035) << nodes;
    for (int r = 0; r < nodes; ++r) {
      EXPECT_EQ(job.counts(r).doubts, 0u);
      EXPECT_EQ(job.counts(r).mismatches, 0u);
      EXPECT_EQ(job.counts(r).sparse.redone, 0u);
    }
  }
}

TEST(SparseCalls, InTeamsOfEveryKind) {
  for (const auto& [nodes, teams, is_recursive] :
       {std::tuple{6, 2, false}, {6, 3, false}, {8, 2, true}, {8, 4, true}, {6, 6, false}}) {
    SparseCallsJob job({.nodes = nodes,
                        .seed = 3,
                        .teams = static_cast<std::uint64_t>(teams),
                        .is_recursive = is_recursive});
    ASSERT_EQ(job.run(30), "") << nodes << " nodes in " << teams << " teams";
    EXPECT_GT(job.staged_calls(), 15u * kLargeCalls);
  }
}

TEST(SparseCalls, TheDensityComesDown) {
  SparseCallsJob::Options options;
  options.settings.sparse.ramp_steps = 40;
  SparseCallsJob job(options);
  std::vector<double> densities;
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(job.run(1), "");
    if (job.staged_calls() > 0) densities.push_back(job.last_density());
  }
  ASSERT_GT(densities.size(), 45u);
  EXPECT_GT(densities[2], 0.18);
  EXPECT_LT(densities.back(), 0.035);
  // 25 %, 6.25 %, then the target of 2 %.
  EXPECT_NEAR(densities[30], 0.0625, 0.025);
}

TEST(SparseCalls, HalfPrecision) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    SparseCallsJob job({.nodes = 5, .type = type});
    ASSERT_EQ(job.run(30), "") << name_of(type);
    EXPECT_GT(job.staged_calls(), 10u);
  }
}

TEST(SparseCalls, OneNodeInDoubtMakesTheCallDenseForAll) {
  SparseCallsJob job({.nodes = 5});
  ASSERT_EQ(job.run(25), "");
  ASSERT_EQ(job.changes.size(), 1u);
  const std::uint64_t before = job.staged_calls();
  job.lost = {{3, 26, 1}, {3, 26, 2}};
  ASSERT_EQ(job.run(2), "");
  EXPECT_EQ(job.staged_calls(), before + 2u * kLargeCalls);
  EXPECT_EQ(job.counts(3).doubts, 2u);
  for (int r = 0; r < 5; ++r) EXPECT_EQ(job.counts(r).sparse.redone, 2u + 1) << "cut in two: 3";
  // The end: one more step delivers all that residuals hold, but what the node kept that was in
  // doubt; that goes into its next exact sum, when it is sure.
  for (int i = 0; i < 20 && job.changes.size() < 2; ++i) ASSERT_EQ(job.run(1), "");
  ASSERT_EQ(job.changes.size(), 2u);
  EXPECT_EQ(job.changes[1].mode, SyncMode::kExact);
  EXPECT_NE(job.changes[1].cause.find("events were lost"), std::string::npos);
  ASSERT_EQ(job.run(6), "");
  EXPECT_LT(job.largest_residual(), 1e-3);
  for (int i = 0; i < 40 && job.changes.size() < 3; ++i) ASSERT_EQ(job.run(1), "");
  ASSERT_EQ(job.changes.size(), 3u) << "after a pause it begins again";
}

// Whatever the teams have in common: a dense sum has every element, and the mode's last step leaves
// nothing behind.
TEST(SparseCalls, DenseSumsAreDenseInTeamsToo) {
  for (const auto& [nodes, teams, is_recursive] :
       {std::tuple{4, 4, false}, {6, 2, false}, {6, 3, false}, {8, 4, true}}) {
    const std::string what = std::to_string(nodes) + " nodes in " + std::to_string(teams);
    SparseCallsJob job({.nodes = nodes,
                        .seed = 5,
                        .teams = static_cast<std::uint64_t>(teams),
                        .is_recursive = is_recursive});
    ASSERT_EQ(job.run(25), "") << what;
    ASSERT_EQ(job.changes.size(), 1u) << what;
    EXPECT_LT(job.last_density(), 0.05) << what;
    job.not_finite = {{2, 25, 0}};
    ASSERT_EQ(job.run(1), "") << what;
    for (int r = 0; r < nodes; ++r) job.lost.insert({r, 26, 1});
    job.lost.insert({3, 26, 4});
    ASSERT_EQ(job.run(1), "") << what;
    EXPECT_EQ(job.counts(0).sparse.redone, 4u) << what << ": one call is cut in two";
    for (int i = 0; i < 20 && job.changes.size() < 2; ++i) ASSERT_EQ(job.run(1), "") << what;
    ASSERT_EQ(job.changes.size(), 2u) << what;
    ASSERT_EQ(job.run(6), "") << what;
    EXPECT_LT(job.largest_residual(), 1e-3) << what;
  }
}

// A call that is certainly another one than the sequence says, by one element.
TEST(SparseCalls, AShiftedIdentityIsCaught) {
  SparseCallsJob job({.nodes = 4});
  ASSERT_EQ(job.run(25), "");
  ASSERT_EQ(job.changes.size(), 1u);
  job.shifted = {{2, 25, 0}};
  ASSERT_EQ(job.run(1), "");
  EXPECT_EQ(job.counts(2).doubts, 1u);
  EXPECT_GT(job.counts(0).sparse.redone, 0u);
  for (int i = 0; i < 20 && job.changes.size() < 2; ++i) ASSERT_EQ(job.run(1), "");
  ASSERT_EQ(job.changes.size(), 2u);
  EXPECT_EQ(job.changes[1].mode, SyncMode::kExact);
}

TEST(SparseCalls, InfinitiesComeOutAsInADenseSumAndResidualsStay) {
  SparseCallsJob job({.nodes = 6});
  ASSERT_EQ(job.run(25), "");
  job.not_finite = {{2, 26, 0}, {4, 28, 4}};
  ASSERT_EQ(job.run(15), "");
  for (int r = 0; r < 6; ++r) {
    EXPECT_EQ(job.counts(r).not_finite, 2u);
    EXPECT_EQ(job.counts(r).sparse.redone, 2u);
  }
  EXPECT_EQ(job.changes.size(), 1u);
}

// The same elements of the same collectives, in other calls.
TEST(SparseCalls, ResidualsFindTheirElementsInCallsThatAreCutOtherwise) {
  for (const DataType type : {DataType::kFloat32, DataType::kBfloat16}) {
    SparseCallsJob job({.nodes = 4, .teams = 2, .type = type});
    ASSERT_EQ(job.run(30), "");
    ASSERT_GT(job.staged_calls(), 0u);
    job.change_calls({{1, 0, 4400, 4400, 4500},
                      {0, 0, 1700, 5000, 1700},
                      {0, 1700, 3300, 5000, 3300},
                      {3, 0, 48, 2048, 300},
                      {3, 48, 2000, 2048, 2100}});
    ASSERT_EQ(job.run(3), "");
    for (int r = 0; r < 4; ++r) {
      EXPECT_EQ(job.counts(r).lost, 0u);
      EXPECT_FALSE(job.owes(r)) << name_of(type);
    }
    EXPECT_EQ(job.largest_residual(), 0);
  }
}

TEST(SparseCalls, CallsThatChangeEndTheModeAndTakeTheResidualsAlong) {
  SparseCallsJob job({.nodes = 4});
  ASSERT_EQ(job.run(30), "");
  ASSERT_GT(job.staged_calls(), 0u);
  EXPECT_GT(job.largest_residual(), 1);
  // The first bucket and the last stay as they are, between them all is different.
  job.change_calls({{0, 0, 5000, 5000, 5000},
                    {1, 0, 2400, 2400, 2400},
                    {3, 0, 2048, 2048, 2048},
                    {1, 2500, 1900, 4400, 2500}});
  ASSERT_EQ(job.run(1), "");
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(job.counts(r).deviations, 1u);
    EXPECT_EQ(job.counts(r).brought, 2u) << "the second half of bucket 1, bucket 3";
    EXPECT_TRUE(job.owes(r)) << "bucket 0, which came in the mode's last step, and half of 1";
  }
  ASSERT_EQ(job.run(2), "");
  for (int r = 0; r < 4; ++r) EXPECT_EQ(job.counts(r).brought, 3u);
  job.change_calls({{0, 0, 5000, 5000, 5000}, {1, 0, 2500, 4400, 2500}});
  ASSERT_EQ(job.run(2), "");
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(job.counts(r).brought, 4u);
    EXPECT_FALSE(job.owes(r));
  }
  EXPECT_EQ(job.largest_residual(), 0);
}

TEST(SparseCalls, TooMuchStateStaysExact) {
  SparseCallsJob::Options options;
  options.settings.state_limit_bytes = 40'000;  // 45,792 for the residuals alone
  SparseCallsJob job(options);
  ::testing::internal::CaptureStderr();
  const std::string outcome = job.run(40);
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_EQ(outcome, "");
  EXPECT_TRUE(job.changes.empty());
  EXPECT_EQ(job.staged_calls(), 0u);
  EXPECT_NE(said.find("RIFFLE_STATE_LIMIT_MB"), std::string::npos) << said;
}

TEST(SparseCalls, EveryKindOfResidualGivesTheSameBitsEverywhere) {
  for (const auto residual : {sparse::ResidualPolicy::kPartial, sparse::ResidualPolicy::kEf21}) {
    SparseCallsJob::Options options{.nodes = 5};
    options.settings.sparse.residual = residual;
    SparseCallsJob job(options);
    ASSERT_EQ(job.run(25), "");
    job.lost = {{1, 26, 1}};
    job.not_finite = {{2, 25, 0}};
    ASSERT_EQ(job.run(20), "");
    EXPECT_GT(job.staged_calls(), 10u);
    EXPECT_GT(job.counts(0).sparse.redone, 1u);
  }
}

TEST(SparseCalls, ALostNodeFailsTheCallsOfAllOthers) {
  SparseCallsJob job({.nodes = 4});
  ASSERT_EQ(job.run(25), "");
  job.kill(2);
  const std::string outcome = job.run(3);
  EXPECT_NE(outcome, "");
  EXPECT_NE(outcome, "nothing moves");
}

TEST(SparseCalls, AMessageThatDoesNotFitIsRefused) {
  SparseCallsJob job({.nodes = 4});
  ASSERT_EQ(job.run(25), "");
  const auto refused = [&](const SparseFrame& frame, const std::string& why) {
    const Result<std::byte*> place = job.sink(1)->get_receive_buffer(0, header_of(frame, 100));
    ASSERT_FALSE(place);
    EXPECT_NE(place.status().message().find(why), std::string::npos) << place.status().message();
  };
  SparseFrame frame;
  frame.total = 100;
  refused(frame, "expected are segments");
  frame.segment = job.counts(1).sparse.segments;
  frame.step = 77;
  refused(frame, "no such step");
  frame.step = 0;
  frame.total = 1u << 30;
  refused(frame, "accepted are 1 to");
  frame.total = 100;
  frame.offset = 50;
  refused(frame, "a part does not fit");
}

}  // namespace
}  // namespace riffle::sparse_calls_test
