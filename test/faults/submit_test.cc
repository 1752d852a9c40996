// An operation whose hand-over to the session throws: its node's fault, which all nodes hear of. It
// is not handed over again by the next one.
#include <gtest/gtest.h>

#include "test/faults/job.h"

namespace riffle::faults {
namespace {

#ifdef RIFFLE_FAULT_POINTS
TEST(Submit, AnOperationThatThrowsIsAnErrorOfAllNodesThatNamesTheCause) {
  set_up_job();
  // The first check of a call is in the engine's submit().
  const Outcome outcome = run_job({Point::kCheck, Phase::kWork, 1});
  ASSERT_TRUE(outcome.has_struck);
  EXPECT_EQ(outcome.broken, "");
  for (const std::string& error : outcome.errors) {
    EXPECT_NE(error.find("internal error"), std::string::npos) << error;
  }
}
#endif

}  // namespace
}  // namespace riffle::faults
