// What a row of the bench says of itself.
#include "bench/harness/report.h"

#include <gtest/gtest.h>

namespace riffle::bench::report_test {
namespace {

TEST(Report, ASparseSumOfNothingIsWrong) {
  Row row;
  row.question.bytes = 1 << 20;
  row.question.is_sparse = row.question.is_relaxed = true;
  row.time_us = 1;
  for (const auto& [density, not_zero, is_wrong] : {std::tuple{0.01, 0.0, true},
                                                    {0.01, 0.004, true},
                                                    {0.01, 0.006, false},
                                                    {0.01, 0.029, false},
                                                    {0.01, 0.031, true},
                                                    {0.01, 1.0, true},
                                                    {0.0, 1.0, false},
                                                    {0.0, 0.0, false}}) {
    row.question.density = density;
    row.not_zero = not_zero;
    EXPECT_EQ(row.is_density_wrong(), is_wrong) << density << " " << not_zero;
    EXPECT_EQ(table_line(row).find("WRONG DENSITY") != std::string::npos, is_wrong);
  }
}

TEST(Report, AWrongResultBeatsNone) {
  Row right, wrong;
  right.time_us = 2;
  wrong.time_us = 1;
  EXPECT_TRUE(wrong.beats(right));
  wrong.wrong = 504;
  EXPECT_FALSE(wrong.beats(right));
  EXPECT_TRUE(right.beats(wrong));
  Row slower_wrong = wrong;
  slower_wrong.time_us = 3;
  EXPECT_TRUE(wrong.beats(slower_wrong));
}

}  // namespace
}  // namespace riffle::bench::report_test
