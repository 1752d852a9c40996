// Sums in a narrower type from end to end in one process: nodes agree on them, get the same bits,
// bring back what rounding kept, and sum exactly together where one of them is in doubt.
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

TEST(NarrowCalls, BeginAfterTheWarmUp) {
  for (const WireFormat wire : kFormats) {
    for (int nodes = 2; nodes <= 8; ++nodes) {
      NarrowJob job(options_of(wire, nodes));
      ASSERT_EQ(job.run(30), "") << nodes;
      ASSERT_EQ(job.changes.size(), 1u) << nodes;
      EXPECT_EQ(job.changes[0].mode, SyncMode::kNarrow);
      EXPECT_GT(job.staged_calls(), 15 * kLargeCalls);
      EXPECT_EQ(job.exact_calls(), 0u);
      EXPECT_GT(job.largest_deviation(), wire == WireFormat::kBfloat16 ? 1e-4 : 1e-3);
      for (int r = 0; r < nodes; ++r) EXPECT_EQ(job.counts(r).doubts, 0u);
    }
  }
}

TEST(NarrowCalls, WhatRoundingKeptComesLater) {
  for (const WireFormat wire : kFormats) {
    NarrowJob::Options options = options_of(wire, 5);
    options.lone = 3;
    NarrowJob job(options);
    for (int i = 0; i < 60; ++i) ASSERT_EQ(job.run(1), "") << i;
    EXPECT_GT(job.staged_calls(), 40 * kLargeCalls);
    EXPECT_GT(job.largest_error(), 1e-3);
    EXPECT_LT(job.largest_error(), 10);  // of numbers up to some 80
  }
}

TEST(NarrowCalls, GradientsOfHalfPrecision) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    NarrowJob::Options options = options_of(WireFormat::kFloat8Block, 4);
    options.type = type;
    NarrowJob job(options);
    ASSERT_EQ(job.run(30), "") << name_of(type);
    EXPECT_GT(job.staged_calls(), 10u);
    options.settings.wire = WireFormat::kBfloat16;  // no wider than that
    NarrowJob same(options);
    ASSERT_EQ(same.run(30), "") << name_of(type);
    EXPECT_EQ(same.staged_calls(), 0u);
  }
}

TEST(NarrowCalls, OneNodeInDoubtMakesTheCallExactForAll) {
  for (const WireFormat wire : kFormats) {
    NarrowJob job(options_of(wire, 5));
    ASSERT_EQ(job.run(25), "");
    ASSERT_EQ(job.changes.size(), 1u);
    const std::uint64_t before = job.staged_calls();
    ASSERT_EQ(job.exact_calls(), 0u);
    job.lost = {{3, 26, 1}, {3, 26, 2}};
    ASSERT_EQ(job.run(2), "");
    EXPECT_EQ(job.staged_calls(), before + 2 * kLargeCalls);
    EXPECT_EQ(job.exact_calls(), 2u);
    EXPECT_EQ(job.counts(3).doubts, 2u);
    // That ends it, and after a pause it begins again.
    for (int i = 0; i < 20 && job.changes.size() < 2; ++i) ASSERT_EQ(job.run(1), "");
    ASSERT_EQ(job.changes.size(), 2u);
    EXPECT_EQ(job.changes[1].mode, SyncMode::kExact);
    EXPECT_NE(job.changes[1].cause.find("events were lost"), std::string::npos);
    for (int i = 0; i < 60 && job.changes.size() < 3; ++i) ASSERT_EQ(job.run(1), "");
    ASSERT_EQ(job.changes.size(), 3u);
  }
}

// No number comes out where one that is not finite went in; what nodes hold back stays finite.
TEST(NarrowCalls, Infinities) {
  for (const WireFormat wire : kFormats) {
    NarrowJob job(options_of(wire, 4));
    ASSERT_EQ(job.run(25), "");
    job.not_finite = {{2, 26, 0}, {1, 28, 4}};
    ASSERT_EQ(job.run(15), "");
    EXPECT_EQ(job.changes.size(), 1u);
    EXPECT_LT(job.largest_error(), 20);
  }
}

TEST(NarrowCalls, EndWhereTheCallsChange) {
  NarrowJob job(options_of(WireFormat::kFloat8Block, 3));
  ASSERT_EQ(job.run(25), "");
  ASSERT_EQ(job.changes.size(), 1u);
  const std::uint64_t before = job.staged_calls();
  job.change_calls({{5, 0, 4000, 4000, 4000}, {6, 0, 3000, 3000, 3000}});
  ASSERT_EQ(job.run(3), "");
  EXPECT_EQ(job.staged_calls(), before);
  EXPECT_EQ(job.counts(0).deviations, 1u);
}

TEST(NarrowCalls, NeedMemoryWithinTheLimit) {
  NarrowJob::Options options = options_of(WireFormat::kBfloat16, 3);
  options.settings.state_limit_bytes = 32 << 10;
  NarrowJob job(options);
  ASSERT_EQ(job.run(30), "");
  EXPECT_EQ(job.staged_calls(), 0u);
}

}  // namespace
}  // namespace riffle::narrow_calls_test
