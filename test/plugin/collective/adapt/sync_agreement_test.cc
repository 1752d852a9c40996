// Node 0 tells why a mode that the job asked for never began: once, at the end at the latest.
#include "plugin/collective/adapt/sync_agreement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/kept_log.h"
#include "test/plugin/collective/adapt/told_calls.h"

namespace riffle::sync_agreement_test {
namespace {

SyncReport known_for(std::uint64_t steps) {
  SyncReport r;
  r.layout = 1;
  r.steady_steps = steps;
  return r;
}

SyncReport unknown(const char* why) {
  SyncReport r;
  r.why = why;
  return r;
}

// What a job of two nodes logs whose nodes report `own` at the end of each interval.
std::vector<std::string> lines_of(int rank, const SyncReport& own, std::uint64_t intervals,
                                  bool fails = false, const ModeSpan& mode = {}) {
  kept_lines.clear();
  set_logger(keep_line);
  {
    testing::ToldCalls calls;
    calls.now = own;
    calls.mode = mode;
    SyncAgreementOptions options;
    options.mode = SyncMode::kNarrow;
    SyncAgreement agreement(rank, 2, options, &calls, nullptr, {});
    for (std::uint64_t i = 0; i < intervals; ++i) {
      agreement.begin_gathering();
      agreement.add(own);
      agreement.interval_ended(0);
    }
    if (fails) agreement.stop();
    agreement.job_ended();
    agreement.job_ended();  // a deferred close comes to it twice
  }
  set_logger(nullptr);
  return kept_lines;
}

void expect_one(const std::vector<std::string>& lines, const std::string& text) {
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines.front().find(text), std::string::npos) << lines.front();
}

TEST(SyncAgreement, AJobThatIsOverBeforeTheFirstIntervalIsTold) {
  expect_one(lines_of(0, known_for(60), 0),
             "narrow never began, sums were exact: the same calls for 60 steps, but no replanning "
             "interval was over");
}

TEST(SyncAgreement, TooFewSteadyStepsAreTold) {
  expect_one(lines_of(0, known_for(7), 3), "the same calls for 7 of 10 steps");
}

TEST(SyncAgreement, CallsThatDoNotRepeatAreToldInShortJobsToo) {
  expect_one(lines_of(0, unknown(""), 3), "never began, sums were exact: the calls do not repeat");
  expect_one(lines_of(0, unknown("the calls changed"), 3), "the calls changed");
}

TEST(SyncAgreement, WhatWasToldIsNotRepeatedAtTheEnd) {
  expect_one(lines_of(0, unknown(""), SyncAgreement::kToldAfter + 3), "narrow has not begun");
}

TEST(SyncAgreement, OneNodeTellsAndOnlyWhereNoModeBeganThatCouldHave) {
  EXPECT_TRUE(lines_of(1, known_for(60), 0).empty());
  EXPECT_TRUE(lines_of(0, unknown(""), 0).empty());
  EXPECT_TRUE(lines_of(0, known_for(60), 0, true).empty());
  EXPECT_TRUE(lines_of(0, known_for(60), 0, false, {16, 99}).empty());  // it began, and ended
}

}  // namespace
}  // namespace riffle::sync_agreement_test
