// Sums in a narrower type from end to end in one process: nodes agree on them, get the same bits,
// and bring back what rounding kept (narrow_job.h says what is checked of every element).
#include <gtest/gtest.h>

#include "test/modes/narrow_job.h"

namespace riffle::narrow_calls_test {
namespace {

using testing::NarrowJob;

constexpr std::uint64_t kLargeCalls = 4;  // of a step
constexpr WireFormat kFormats[] = {WireFormat::kBfloat16, WireFormat::kFloat8Block};

NarrowJob::Options options_of(WireFormat wire, int nodes) {
  NarrowJob::Options options;
  options.nodes = nodes;
  options.seed = static_cast<std::uint64_t>(nodes);
  options.settings.wire = wire;
  return options;
}

TEST(NarrowCalls, BeginAfterTheWarmUpAndBringBackWhatRoundingKept) {
  for (const WireFormat wire : kFormats) {
    for (int nodes = 2; nodes <= 8; ++nodes) {
      NarrowJob job(options_of(wire, nodes));
      ASSERT_EQ(job.run_each(30), "") << nodes;
      ASSERT_EQ(job.changes.size(), 1u) << nodes;
      EXPECT_EQ(job.changes[0].mode, SyncMode::kNarrow);
      EXPECT_GT(job.staged_calls(), 15 * kLargeCalls);
      EXPECT_GT(job.largest_error(), wire == WireFormat::kBfloat16 ? 0.01 : 0.2);
      EXPECT_GT(job.largest_deviation(), wire == WireFormat::kBfloat16 ? 0.01 : 0.2);
      for (int r = 0; r < nodes; ++r) EXPECT_EQ(job.counts(r).doubts, 0u);
    }
  }
}

TEST(NarrowCalls, GradientsOfHalfPrecision) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    NarrowJob::Options options = options_of(WireFormat::kFloat8Block, 4);
    options.type = type;
    NarrowJob job(options);
    ASSERT_EQ(job.run_each(30), "") << name_of(type);
    EXPECT_GT(job.staged_calls(), 10u);
    options.settings.wire = WireFormat::kBfloat16;  // no wider than that
    NarrowJob same(options);
    ASSERT_EQ(same.run_each(30), "") << name_of(type);
    EXPECT_EQ(same.staged_calls(), 0u);
  }
}

// Without the errors of the node in doubt, which stay; so the equation holds, but for the rounding
// of what it sends.
TEST(NarrowCalls, ANodeInDoubtSendsItsGradientsAloneAndTheModeEnds) {
  for (const WireFormat wire : kFormats) {
    NarrowJob job(options_of(wire, 5));
    ASSERT_EQ(job.run_each(25), "");
    ASSERT_EQ(job.changes.size(), 1u);
    const std::uint64_t before = job.staged_calls();
    job.lost = {{3, 26, 1}};
    for (int r = 0; r < 5; ++r) job.lost.insert({r, 26, 2});  // nobody knows how much counts
    ASSERT_EQ(job.run_each(2), "");
    EXPECT_EQ(job.staged_calls(), before + 2 * kLargeCalls);
    EXPECT_EQ(job.counts(3).doubts, 2u);
    for (int i = 0; i < 20 && job.changes.size() < 2; ++i) ASSERT_EQ(job.run_each(1), "");
    ASSERT_EQ(job.changes.size(), 2u);
    EXPECT_EQ(job.changes[1].mode, SyncMode::kExact);
    EXPECT_NE(job.changes[1].cause.find("events were lost"), std::string::npos);
    for (int i = 0; i < 60 && job.changes.size() < 3; ++i) ASSERT_EQ(job.run_each(1), "");
    ASSERT_EQ(job.changes.size(), 3u) << "after a pause it begins again";
  }
}

TEST(NarrowCalls, InfinitiesReachAllNodesAndNothingElse) {
  for (const WireFormat wire : kFormats) {
    NarrowJob job(options_of(wire, 4));
    ASSERT_EQ(job.run_each(25), "");
    job.not_finite = {{2, 26, 0}, {1, 28, 4}};
    ASSERT_EQ(job.run_each(15), "");
    EXPECT_EQ(job.changes.size(), 1u);
    for (int r = 0; r < 4; ++r) EXPECT_EQ(job.counts(r).not_finite, 2u);
  }
}

TEST(NarrowCalls, EndWhereTheCallsChange) {
  NarrowJob job(options_of(WireFormat::kFloat8Block, 3));
  ASSERT_EQ(job.run_each(25), "");
  ASSERT_EQ(job.changes.size(), 1u);
  const std::uint64_t before = job.staged_calls();
  job.change_calls({{5, 0, 4000, 4000, 4000}, {6, 0, 3000, 3000, 3000}});
  ASSERT_EQ(job.run_each(3), "");
  EXPECT_EQ(job.staged_calls(), before);
  EXPECT_EQ(job.counts(0).deviations, 1u);
}

TEST(NarrowCalls, NeedMemoryWithinTheLimit) {
  NarrowJob::Options options = options_of(WireFormat::kBfloat16, 3);
  options.settings.state_limit_bytes = 32 << 10;
  NarrowJob job(options);
  ASSERT_EQ(job.run_each(30), "");
  EXPECT_EQ(job.staged_calls(), 0u);
}

}  // namespace
}  // namespace riffle::narrow_calls_test
