// RIFFLE_MIN_RATE in the simulator: nodes whose links have become slow are sent away after three
// replanning intervals, all at once or not at all, and every sum stays right (play.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "lab/simulation/play.h"
#include "plugin/config/log.h"
#include "topology/plan/planner.h"

namespace riffle::sim::min_rate_test {
namespace {

constexpr std::int64_t kRateKbps = 100'000;  // of payload; as link rate 4.6 % more

std::vector<std::string>& log_lines() {
  static std::vector<std::string> lines;
  return lines;
}

void keep_line(int, unsigned long, const char*, int, const char* format, ...) {
  char line[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  log_lines().emplace_back(line);
}

class MinRateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log_lines().clear();
    set_logger(keep_line);
  }
  void TearDown() override { set_logger(nullptr); }

  // Eight nodes; from 50 ms on the links of some have a part of their rate left.
  static Scenario with(const std::vector<int>& slow, double factor, std::int64_t least_kbps) {
    Scenario s = surviving_job(even_fabric(8, kRateKbps), 5, 40, 64 << 10);
    s.session.replan.collectives = 1;
    s.session.replan.least_kbps = least_kbps;
    for (const int node : slow) {
      Fault f;
      f.kind = Fault::Kind::kNodeRate;
      f.node = node;
      f.factor = factor;
      f.when_ns = 50'000'000;
      f.length_ns = 600'000'000'000;
      s.faults.push_back(f);
    }
    return s;
  }

  // The others finish everything; those who were sent away say so.
  static void expect_sent_away(const Scenario& s, const std::vector<int>& away) {
    std::vector<int> left;
    for (int r = 0; r < s.size(); ++r) {
      if (!std::ranges::binary_search(away, r)) left.push_back(r);
    }
    const Outcome outcome = play(s);
    EXPECT_EQ(outcome.broken, "") << describe(s);
    EXPECT_EQ(outcome.losses_survived, away.empty() ? 0 : 1) << "not all at once";
    for (int r = 0; r < s.size(); ++r) {
      const NodeEnd& end = outcome.nodes[r];
      if (std::ranges::binary_search(left, r)) {
        EXPECT_EQ(end.error, "") << r;
        EXPECT_EQ(end.finished, s.calls.size()) << r;
        EXPECT_EQ(end.side, left) << r;
      } else {
        EXPECT_EQ(end.error.find("excluded: it carried "), 0u) << r << ": " << end.error;
        EXPECT_NE(end.error.find("RIFFLE_MIN_RATE=30"), std::string::npos) << end.error;
        EXPECT_LT(end.finished, s.calls.size()) << r;
      }
    }
  }

  static long lines_with(const std::string& text) {
    return std::ranges::count_if(
        log_lines(), [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
};

TEST_F(MinRateTest, OneIsSentAway) {
  expect_sent_away(with({3}, 0.1, 30'000), {3});
  expect_sent_away(with({7}, 0.27, 30'000), {7});  // 28 Mbit/s
  EXPECT_EQ(lines_with("RIFFLE_MIN_RATE"), 0);
}

TEST_F(MinRateTest, TwoAreSentAwayAtOnce) {
  expect_sent_away(with({3, 6}, 0.1, 30'000), {3, 6});
  log_lines().clear();
  Scenario later = with({2, 7}, 0.1, 30'000);
  later.faults[1].when_ns +=
      400'000'000;  // while replanning intervals are counted for the first one
  expect_sent_away(later, {2, 7});
}

TEST_F(MinRateTest, NobodyIsWhereTheOthersWouldBeNoQuorum) {
  expect_sent_away(with({0, 1, 2, 3, 4}, 0.1, 30'000), {});
  EXPECT_EQ(lines_with("no quorum"), 1);
  log_lines().clear();
  expect_sent_away(with({3, 4, 5, 6, 7}, 0.1, 30'000), {});
  EXPECT_EQ(lines_with("no quorum"), 1);
}

TEST_F(MinRateTest, WhoPlansStaysAndSaysSo) {
  expect_sent_away(with({0}, 0.1, 30'000), {});
  EXPECT_EQ(lines_with("it is the one that plans"), 1);
}

// A tenth of the rate without the knob, or with rates that are just enough: another plan.
TEST_F(MinRateTest, NobodyIsWithoutTheKnobOrWithJustEnough) {
  for (const auto& [factor, least_kbps] : {std::pair(0.1, 0), std::pair(0.31, 30'000)}) {
    const Scenario s = with({3}, factor, least_kbps);
    expect_sent_away(s, {});
    EXPECT_GT(lines_with("node 3 now sends"), 0);
    EXPECT_EQ(lines_with("RIFFLE_MIN_RATE"), 0);
    log_lines().clear();
  }
}

// Who turns slow at different times goes when it is noticed, and nobody else ever does: also not
// those who stand behind a narrow uplink, or behind a slow node in the order of a plan.
TEST_F(MinRateTest, NobodyButSlowNodesIsEver) {
  int slow_nodes = 0, away = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    std::mt19937_64 random(seed);
    Scenario s = with({}, 1, seed < 5 ? 12'000 : 30'000);
    s.seed = s.network.seed = seed;
    if (seed % 2 == 0) {
      s.fabric.racks = {{"a", kRateKbps / 2, kRateKbps / 2}, {"b", kRateKbps / 2, kRateKbps / 2}};
      for (int r = 0; r < s.size(); ++r) s.fabric.nodes[r].rack = r % 2;
      s.plans = plan(s.fabric, 1 << 20, {})->plans;
    }
    std::vector<int> slow;
    while (slow.size() < seed % 4) {
      Fault f;
      f.kind = Fault::Kind::kNodeRate;
      f.node = 1 + static_cast<int>(random() % 7);
      f.factor = seed < 5 ? 0.05 : 0.2;
      f.when_ns = 50'000'000 + random() % 600'000'000;
      f.length_ns = 600'000'000'000;
      if (std::ranges::find(slow, f.node) != slow.end()) continue;
      slow.push_back(f.node);
      s.faults.push_back(f);
    }
    std::ranges::sort(s.faults, {}, &Fault::when_ns);
    const Outcome outcome = play(s);
    EXPECT_EQ(outcome.broken, "") << describe(s);
    for (int r = 0; r < s.size(); ++r) {
      const NodeEnd& end = outcome.nodes[r];
      const bool is_slow = std::ranges::find(slow, r) != slow.end();
      EXPECT_TRUE(end.error.empty() || is_slow) << r << ": " << end.error << "\n" << describe(s);
      slow_nodes += is_slow;
      away += !end.error.empty();
    }
  }
  EXPECT_EQ(away, slow_nodes);
}

}  // namespace
}  // namespace riffle::sim::min_rate_test
