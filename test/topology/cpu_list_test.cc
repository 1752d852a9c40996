// topology/host/cpu_list.h: the kernel's lists and masks.
#include "topology/host/cpu_list.h"

#include <gtest/gtest.h>

namespace riffle::cpu_list_test {
namespace {

std::string again(const char* text) {
  const auto cpus = parse_cpu_list(text);
  return cpus ? to_text(*cpus) : "error: " + cpus.status().message();
}

TEST(CpuList, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(again("0-3,8\n"), "0-3,8");
  EXPECT_EQ(again("7"), "7");
  EXPECT_EQ(again(" 4-7 , 2 "), "2,4-7");
  EXPECT_EQ(again("3,1,2,2,0-1"), "0-3");
  EXPECT_EQ(again(""), "none");
  EXPECT_EQ(again("8191"), "8191");
}

TEST(CpuList, WrongTextsNameThePartAndTheRange) {
  for (const char* text : {"a", "1-", "-1", "3-2", "1,,2", "1,", "8192", "0-8192", "1-2-3", "0x1",
                           "99999999999999999999"}) {
    const auto cpus = parse_cpu_list(text);
    ASSERT_FALSE(cpus.is_ok()) << text;
    EXPECT_NE(cpus.status().message().find("0 to 8191"), std::string::npos)
        << cpus.status().message();
  }
}

TEST(CpuList, ManyTimesTheSameIsStillBounded) {
  std::string text = "0-8191";
  for (int i = 0; i < 5; ++i) text += ",0-8191";
  EXPECT_FALSE(parse_cpu_list(text).is_ok());
}

TEST(CpuList, Masks) {
  EXPECT_EQ(to_mask({}), "00000000");
  EXPECT_EQ(to_mask({0, 1, 31}), "80000003");
  EXPECT_EQ(to_mask({32, 64}), "00000001,00000001,00000000");
}

TEST(CpuList, Intersections) {
  EXPECT_EQ(intersection({0, 2, 4, 6}, {1, 2, 3, 6}), (CpuList{2, 6}));
  EXPECT_TRUE(contains({1, 5}, 5));
  EXPECT_FALSE(contains({1, 5}, 4));
}

}  // namespace
}  // namespace riffle::cpu_list_test
