// What differs between hosts is said once, with what most have first.
#include "tools/doctor/agreement.h"

#include <gtest/gtest.h>

namespace riffle::tools::agreement_test {
namespace {

std::vector<HostReport> alike(int hosts) {
  std::vector<HostReport> all;
  for (int h = 0; h < hosts; ++h) {
    HostReport report;
    report.host = "n" + std::to_string(h);
    report.version = "1.0";
    report.build = "abc";
    report.nccl = "2.28.9";
    report.settings = {{"RIFFLE_STREAMS", "2"}, {"RIFFLE_SYNC", "exact"}};
    all.push_back(report);
  }
  return all;
}

std::string said_of(const std::vector<HostReport>& reports) {
  Verdicts verdicts;
  check_agreement(reports, &verdicts);
  return verdicts.text();
}

TEST(Agreement, NothingToSay) { EXPECT_EQ(said_of(alike(3)), "no problem\n"); }

TEST(Agreement, NamesWhoDiffers) {
  auto reports = alike(4);
  reports[1].settings["RIFFLE_STREAMS"] = "4";
  reports[2].nccl = "";
  reports[3].build = "def";
  const std::string text = said_of(reports);
  EXPECT_NE(text.find("RIFFLE_STREAMS differs: 2 on n0, n2, n3; 4 on n1\n"), text.npos) << text;
  EXPECT_NE(text.find("NCCL's release differs: 2.28.9 on n0, n1, n3; none on n2\n"), text.npos)
      << text;
  EXPECT_NE(text.find("differs: abc on n0, n1, n2; def on n3\n"), text.npos) << text;
  EXPECT_NE(text.find("3 problems"), text.npos) << text;
}

TEST(Agreement, AProblemOfSeveralHostsIsSaidOnce) {
  auto reports = alike(9);
  for (auto& report : reports) report.problems = {{"no CollNet", "export X=1"}};
  reports[8].problems.emplace_back("no NIC", "plug one in");
  const std::string text = said_of(reports);
  EXPECT_NE(text.find("n0, n1, n2, n3, n4, n5 and 3 others: no CollNet\n"), text.npos) << text;
  EXPECT_NE(text.find("n8: no NIC\n        remedy: plug one in\n"), text.npos) << text;
  EXPECT_NE(text.find("2 problems"), text.npos) << text;
}

TEST(Agreement, MtusAreANote) {
  auto reports = alike(3);
  for (auto& report : reports) report.mtu = "9000";
  EXPECT_EQ(said_of(reports), "no problem\n");
  reports[2].mtu = "1500";
  const std::string text = said_of(reports);
  EXPECT_NE(text.find("note  MTU differs: 9000 on n0, n1; 1500 on n2; "), text.npos) << text;
  EXPECT_NE(text.find("no problem"), text.npos) << text;
}

TEST(Agreement, FilesAreForSoManyHosts) {
  auto reports = alike(128);
  for (auto& report : reports) report.settings["RIFFLE_STREAMS"] = "0";
  for (auto& report : reports) report.files = 20'000;
  EXPECT_EQ(said_of(reports), "no problem\n");
  reports[5].files = 500;
  const std::string text = said_of(reports);
  EXPECT_NE(text.find("n5: a job may open 500 files; one of 128 nodes takes 510\n"), text.npos)
      << text;
  reports.resize(64);
  EXPECT_EQ(said_of(reports), "no problem\n");
  for (auto& report : reports) report.settings["RIFFLE_STREAMS"] = "4";
  EXPECT_NE(said_of(reports).find("n5: a job may open 500 files; one of 64 nodes takes 760\n"),
            std::string::npos);
}

TEST(Agreement, ALineHoldsAReport) {
  auto report = alike(1)[0];
  report.mtu = "9000";
  report.files = 1024;
  report.clock_s = 12345;
  report.problems = {{"a \"quoted\"\ntext", "b"}};
  const std::string line = to_line(report);
  EXPECT_EQ(line.find('\n'), line.npos);
  const auto back = report_from_line(line);
  ASSERT_TRUE(back) << back.status().message();
  EXPECT_EQ(to_line(*back), line);
  for (const char* wrong :
       {"", "hello {}", "diagnosed ", "diagnosed {}", "diagnosed [1]", "diagnosed {\"host\":7}"}) {
    EXPECT_FALSE(report_from_line(wrong)) << wrong;
  }
}

TEST(Agreement, ATableOfHosts) {
  auto reports = alike(2);
  reports[1].build = "";
  EXPECT_EQ(table_of(reports),
            "host  riffle  build  NCCL    problems\n"
            "n0    1.0     abc    2.28.9  0\n"
            "n1    1.0     none   2.28.9  0\n");
}

}  // namespace
}  // namespace riffle::tools::agreement_test
