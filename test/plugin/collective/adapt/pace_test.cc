// Whether a plan takes longer than it did.
#include "plugin/collective/adapt/pace.h"

#include <gtest/gtest.h>

namespace riffle::pace_test {
namespace {

TEST(Pace, NothingIsKnownBeforeTheFirstInterval) {
  Pace pace;
  EXPECT_FALSE(pace.is_steady());
  pace.took(0);
  EXPECT_FALSE(pace.is_steady());
  pace.took(1000);
  EXPECT_TRUE(pace.is_steady());
}

TEST(Pace, SlowerIsWhatTwoIntervalsInARowSay) {
  Pace pace;
  for (const double us : {1000.0, 1100.0, 1500.0, 1100.0, 1500.0, 0.0}) {
    pace.took(us);
    EXPECT_TRUE(pace.is_steady()) << us;
  }
  EXPECT_EQ(pace.last_us(), 1500);
  pace.took(1500);
  EXPECT_FALSE(pace.is_steady());
  pace.took(1500);
  EXPECT_FALSE(pace.is_steady()) << "as long as it lasts";
  pace.took(1000);
  EXPECT_TRUE(pace.is_steady());
}

TEST(Pace, AnotherPlanHasAPaceOfItsOwn) {
  Pace pace;
  pace.took(1000);
  pace.restart();
  EXPECT_EQ(pace.last_us(), 0);
  EXPECT_FALSE(pace.is_steady());
  pace.restart(2000);
  EXPECT_TRUE(pace.is_steady());
  pace.took(2200);
  pace.took(2200);
  EXPECT_TRUE(pace.is_steady());
}

TEST(Pace, WhereANodeLacksProcessorSlowerSaysNothing) {
  Pace pace;
  pace.took(1000, false);
  EXPECT_TRUE(pace.is_steady());
  for (int i = 0; i < 5; ++i) pace.took(2000, false);
  EXPECT_TRUE(pace.is_steady());
  EXPECT_EQ(pace.last_us(), 1000);
  for (int i = 0; i < Pace::kIntervals; ++i) pace.took(2000, true);
  EXPECT_FALSE(pace.is_steady());
}

}  // namespace
}  // namespace riffle::pace_test
