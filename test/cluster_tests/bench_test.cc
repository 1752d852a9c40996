// `riffle bench` end to end on a small cluster: right sums, traffic on the wire, JSON as
// documented.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/cluster/command.h"
#include "test/cluster/namespaces.h"

namespace riffle::cluster {
namespace {

class BenchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    std::string folder = (std::filesystem::temp_directory_path() / "bench-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    std::ofstream(folder_ + "/small3.toml") << "about = \"3 nodes, one slow\"\nnodes = 3\n"
                                               "rate_mbps = 200\n[[exception]]\nnodes = [1]\n"
                                               "rate_mbps = 100\n";
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  Result<std::string> bench(std::vector<std::string> arguments) {
    std::vector<std::string> argv = {RIFFLE_COMMAND, "bench", "--profile",
                                     folder_ + "/small3.toml"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run_command(argv, "", 240000);
  }
  std::string folder_;
};

TEST_F(BenchTest, RowsAreRightAndOnTheWire) {
  const std::string json = folder_ + "/rows.json";
  const auto out =
      bench({"--peers", "nccl-ring", "--sizes", "4K,1M", "--iters", "2", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 4u) << *out;
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("profile"), "small3");
    EXPECT_EQ(row.at("wrong"), 0) << row;
    EXPECT_EQ(row.at("off_wire"), false) << row;
    EXPECT_EQ(row.at("dtype"), "float");
    EXPECT_EQ(row.at("redop"), "sum");
    EXPECT_GT(row.at("time_us"), 0);
    EXPECT_GT(row.at("algbw_gbs"), 0);
    EXPECT_GT(row.at("busbw_gbs"), 0);
  }
  EXPECT_EQ(rows[1].at("peer"), "riffle");
  EXPECT_EQ(rows[1].at("bytes"), 1 << 20);
  // S over the slow node's payload rate, less what a token bucket lets pass ahead.
  EXPECT_NEAR(rows[1].at("bound_us").get<double>(), (1 << 20) * 8 / 100.0 * 1514 / 1448, 1);
  EXPECT_GT(rows[1].at("x_bound").get<double>(), 0.9);
}

TEST_F(BenchTest, ItsRecordExplainsWhatLimits) {
  const std::string record = folder_ + "/record";
  const auto out = bench({"--sizes", "2M", "--iters", "3", "--record", record});
  ASSERT_TRUE(out) << out.status().message();
  const auto text = run_command({RIFFLE_COMMAND, "explain", record});
  ASSERT_TRUE(text) << text.status().message();
  const std::string first = text->substr(0, text->find('\n'));
  EXPECT_NE(first.find("of node node1 limits: 100 Mbit/s"), std::string::npos) << *text;
  EXPECT_NE(text->find("records of 3 nodes"), std::string::npos) << *text;
  EXPECT_NE(text->find("wait for node1"), std::string::npos) << *text;
}

TEST_F(BenchTest, HalfAndMaximum) {
  const std::string json = folder_ + "/rows.json";
  const auto out = bench(
      {"--sizes", "256K", "--dtype", "half", "--redop", "max", "--iters", "1", "--json", json});
  ASSERT_TRUE(out) << out.status().message();
  const auto rows = nlohmann::json::parse(std::ifstream(json));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("wrong"), 0);
}

TEST_F(BenchTest, WrongUsageNamesWhatIsAccepted) {
  for (const auto& [option, value, named] :
       {std::tuple{"--dtype", "float12", "bfloat16"}, std::tuple{"--sizes", "3", "whole elements"},
        std::tuple{"--redop", "avg", "sum, prod, max, min"},
        std::tuple{"--peers", "pigeons", "openmpi"}}) {
    const auto out = bench({option, value});
    ASSERT_FALSE(out) << option;
    EXPECT_NE(out.status().message().find(named), std::string::npos) << out.status().message();
  }
}

}  // namespace
}  // namespace riffle::cluster
