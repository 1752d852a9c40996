// What `riffle bench --plugin A --plugin B` makes of its arguments and of its trials.
#include "bench/harness/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace riffle::bench::turns_test {
namespace {

using Times = std::vector<std::vector<double>>;  // by round and trial

Rounds rounds_of(const Times& times_us) {
  Rounds rounds;
  for (const auto& of_round : times_us) {
    rounds.emplace_back();
    for (const double time_us : of_round) {
      Row row;
      row.question.bytes = 1000;
      row.question.iters = 1;
      row.time_us = time_us;
      rounds.back().push_back(row);
    }
  }
  return rounds;
}

TEST(Turns, AnotherComesFirstEveryTimeAndNoneAlwaysBehindTheSame) {
  constexpr std::size_t kContenders = 5;
  std::set<std::size_t> before_last_one;
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t trial = 0; trial < 10; ++trial) {
      const std::vector<std::size_t> order = order_of(kContenders, round, trial);
      EXPECT_EQ(order[0], (round + trial) % kContenders);
      EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), kContenders);
      EXPECT_EQ(order, order_of(kContenders, round, trial));
      const auto at = std::ranges::find(order, kContenders - 1);
      if (at != order.begin()) before_last_one.insert(*(at - 1));
    }
  }
  EXPECT_EQ(before_last_one.size(), kContenders - 1);
  EXPECT_EQ(order_of(1, 2, 3), std::vector<std::size_t>{0});
}

TEST(PairedRatio, TrialByTrialHoweverTheMachineDrifts) {
  // Twice as slow in the end as in the beginning; the other one always 10 % slower.
  const PairedRatio ratio =
      paired_ratio(rounds_of({{110, 132}, {220}}), rounds_of({{100, 120}, {200}}));
  ASSERT_EQ(ratio.pairs, (Times{{1.1, 1.1}, {1.1}}));
  EXPECT_DOUBLE_EQ(ratio.median, 1.1);
  EXPECT_DOUBLE_EQ(ratio.least, 1.1);
  EXPECT_DOUBLE_EQ(ratio.greatest, 1.1);
}

TEST(PairedRatio, ARoundCountsOnceHoweverManyTrialsItHas) {
  // The processes of the second round lie badly, of the third one well.
  const PairedRatio ratio =
      paired_ratio(rounds_of({{101, 400, 99}, {180, 180, 190}, {60, 70, 70}}),
                   rounds_of({{100, 100, 100}, {100, 100, 100}, {100, 100, 100}}));
  EXPECT_EQ(ratio.pairs, (Times{{1.01, 4, 0.99}, {1.8, 1.8, 1.9}, {0.6, 0.7, 0.7}}));
  EXPECT_EQ(ratio.rounds, (std::vector<double>{1.01, 1.8, 0.7}));
  EXPECT_DOUBLE_EQ(ratio.median, 1.01);
  EXPECT_DOUBLE_EQ(ratio.least, 0.7);
  EXPECT_DOUBLE_EQ(ratio.greatest, 1.8);
}

// Tables of the binomial distribution: 1-based places of the bounds among the sorted values.
TEST(PairedRatio, IntervalOfTheMedian) {
  for (const auto& [rounds, low, high] :
       {std::tuple{5, 0, 0}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {20, 6, 15}, {100, 40, 61}}) {
    Times times;
    for (int i = rounds; i > 0; --i) times.push_back({static_cast<double>(i)});
    const Times ones(times.size(), {1});
    const PairedRatio ratio = paired_ratio(rounds_of(times), rounds_of(ones));
    EXPECT_EQ(ratio.low, low) << rounds;
    EXPECT_EQ(ratio.high, high) << rounds;
  }
}

TEST(OverAll, MedianTimeAndEveryWrongElement) {
  TurnsRow measured{{"a", "/a.so"}, rounds_of({{30, 10}, {20, 1000}}), 3};
  measured.rounds[0][1].wrong = 2;
  measured.rounds[1][1].wrong = 5;
  measured.rounds[1][0].off_wire = true;
  measured.rounds[0][0].cpu_load = measured.rounds[0][1].cpu_load = -1;  // too short to tell
  measured.rounds[1][0].cpu_load = 0.25;
  measured.rounds[1][1].cpu_load = 0.75;
  measured.rounds[0][1].sent_per_byte = 1.5;
  const Row row = over_all(measured);
  EXPECT_EQ(row.question.iters, 4);
  EXPECT_DOUBLE_EQ(row.time_us, 25);
  EXPECT_DOUBLE_EQ(row.mean_us, 265);
  EXPECT_EQ(row.wrong, 10u);
  EXPECT_TRUE(row.off_wire);
  EXPECT_DOUBLE_EQ(row.cpu_load, 0.5);
  EXPECT_DOUBLE_EQ(row.sent_per_byte, 1.5);
}

TEST(TurnsTable, LinesAndJsonSayWhatWasMeasured) {
  const std::vector<TurnsRow> rows = {
      {{"old", "/lib/old.so"}, rounds_of({{100, 100, 100}, {200}, {100}})},
      {{"new", "/lib/new.so"}, rounds_of({{110, 90, 100}, {250}, {100}})}};
  const std::string table = turns_table(rows);
  EXPECT_EQ(table.substr(table.find("# time")),
            "# time of new / time of old, 1000 bytes: median of 3 rounds 1.0000; all within 1.0000 "
            "to 1.2500\n");
  const nlohmann::json json = to_json(rows);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_TRUE(json[0].at("ratio").is_null());
  EXPECT_EQ(json[1].at("plugin"), "/lib/new.so");
  EXPECT_EQ(json[1].at("time_us"), 100);
  ASSERT_EQ(json[1].at("trials").size(), 5u);
  EXPECT_EQ(json[1].at("trials")[3].at("round"), 1);
  EXPECT_EQ(json[1].at("trials")[3].at("time_us"), 250);
  const nlohmann::json& ratio = json[1].at("ratio");
  EXPECT_EQ(ratio.at("to"), "old");
  EXPECT_EQ(ratio.at("rounds"), (std::vector<double>{1, 1.25, 1}));
  EXPECT_EQ(ratio.at("pairs")[0], (std::vector<double>{1.1, 0.9, 1}));
  EXPECT_TRUE(ratio.at("low_95").is_null());
}

class ContendersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "contenders-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& path) {
    const std::filesystem::path full = folder_ + "/" + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << "no shared object\n";
    return full.string();
  }
  static std::string error_of(const std::vector<std::string>& arguments) {
    const auto all = contenders(arguments);
    return all ? "" : all.status().message();
  }
  std::string folder_;
};

TEST_F(ContendersTest, NamesAreGivenOrTellThePathsApart) {
  const std::string old_file = file("old/build/lib.so"), new_file = file("new/build/lib.so");
  const auto by_path = contenders({old_file, new_file});
  ASSERT_TRUE(by_path) << by_path.status().message();
  EXPECT_EQ((*by_path)[0].name, "old");
  EXPECT_EQ((*by_path)[1].name, "new");
  EXPECT_EQ((*by_path)[1].file, new_file);
  const auto given = contenders({"a=" + old_file, "b=" + old_file, new_file});
  ASSERT_TRUE(given) << given.status().message();
  EXPECT_EQ((*given)[0].name, "a");
  EXPECT_EQ((*given)[1].name, "b");
  EXPECT_EQ((*given)[1].file, old_file);
  EXPECT_EQ((*given)[2].name, "lib");
  const auto equals = contenders({file("x=1/a.so"), file("x=1/b.so")});
  ASSERT_TRUE(equals) << equals.status().message();
  EXPECT_EQ((*equals)[0].name, "a");
}

TEST_F(ContendersTest, WrongArgumentsAreNamed) {
  const std::string some = file("some.so");
  EXPECT_NE(error_of({some, some}).find("two shared objects are called \"some\""),
            std::string::npos);
  EXPECT_NE(error_of({"a=" + some, "a=" + file("other.so")}).find("are called \"a\""),
            std::string::npos);
  EXPECT_NE(error_of({"a=" + folder_ + "/none.so"}).find("there is no file"), std::string::npos);
  EXPECT_NE(error_of({folder_}).find("there is no file"), std::string::npos);
  for (const std::string name : {"", "two words", ".hidden"}) {
    EXPECT_NE(error_of({name + "=" + some}).find("a name is 1 to 40"), std::string::npos) << name;
  }
}

TEST_F(ContendersTest, WhatIsNoPluginIsNamedWithTheReason) {
  const Status text = check_plugin({"a", file("text.so")});
  EXPECT_NE(text.message().find("text.so is no plugin of NCCL: "), std::string::npos)
      << text.message();
  EXPECT_NE(text.message().find("file too short"), std::string::npos) << text.message();
  const Status other = check_plugin({"a", "libm.so.6"});
  EXPECT_NE(other.message().find("does not export ncclNetPlugin_v"), std::string::npos)
      << other.message();
}

}  // namespace
}  // namespace riffle::bench::turns_test
