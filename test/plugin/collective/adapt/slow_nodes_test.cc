// Who has been below RIFFLE_MIN_RATE for long enough.
#include "plugin/collective/adapt/slow_nodes.h"

#include <gtest/gtest.h>

namespace riffle::slow_nodes_test {
namespace {

constexpr std::int64_t kLeast = 50'000;

// What a replanning interval shows of a link, Mbit/s: what it carried as the limit (0: it never
// was), for which part of the time, and at most.
struct Shown {
  std::int64_t limit_mbps = 0;
  double share = 1;
  std::int64_t peak_mbps = limit_mbps;
};

struct Replanner {
  explicit Replanner(int nodes, std::int64_t least_kbps = kLeast) : slow(least_kbps, nodes) {}
  // What is believed of a node's receiving, and what it showed: the same, unless said otherwise.
  std::vector<int> next(const std::vector<std::int64_t>& mbps, const std::vector<Shown>& shown) {
    Fabric live = even_fabric(static_cast<int>(mbps.size()), 100'000);
    std::vector<probe::PassiveReport> reports(mbps.size());
    for (std::size_t i = 0; i < mbps.size(); ++i) {
      live.nodes[i].in_kbps = mbps[i] * 1000;
      reports[i].active_ms = 400;
      reports[i].out.peak_kbps = 100'000;
      reports[i].in = {shown[i].limit_mbps * 1000, shown[i].peak_mbps * 1000,
                       static_cast<std::int64_t>(400 * shown[i].share)};
    }
    return slow.update(live, reports);
  }
  std::vector<int> next(const std::vector<std::int64_t>& mbps) {
    std::vector<Shown> shown;
    for (const std::int64_t limit : mbps) shown.push_back({limit});
    return next(mbps, shown);
  }
  SlowNodes slow;
};

using Nodes = std::vector<int>;

TEST(SlowNodes, ThreeIntervalsInARow) {
  Replanner e(3);
  EXPECT_EQ(e.next({100, 49, 100}), Nodes());
  EXPECT_EQ(e.next({100, 49, 100}), Nodes());
  EXPECT_EQ(e.next({100, 49, 100}), Nodes{1});
  EXPECT_EQ(e.slow.intervals_below(1), 3);
  EXPECT_EQ(e.next({100, 50, 100}), Nodes());  // just enough: it begins anew
  EXPECT_EQ(e.next({100, 10, 100}), Nodes());
  EXPECT_EQ(e.next({100, 10, 100}), Nodes());
  EXPECT_EQ(e.next({100, 10, 100}), Nodes{1});
}

TEST(SlowNodes, AllAtOnceThoughNotNoticedAtOnce) {
  Replanner e(4);
  EXPECT_EQ(e.next({100, 10, 100, 100}), Nodes());
  EXPECT_EQ(e.next({100, 10, 100, 100}), Nodes());
  EXPECT_EQ(e.next({100, 10, 100, 10}), Nodes());
  EXPECT_EQ(e.next({100, 10, 100, 10}), Nodes());
  EXPECT_EQ(e.next({100, 10, 100, 10}), (Nodes{1, 3}));
}

TEST(SlowNodes, WhoWaversDoesNotSaveOthersForEver) {
  Replanner e(3);
  for (int interval = 1; interval < 6; ++interval) {
    EXPECT_EQ(e.next({100, 10, interval % 2 == 1 ? 10 : 100}), interval == 4 ? Nodes{1} : Nodes())
        << interval;
  }
  Replanner f(4);
  for (int interval = 1; interval < 6; ++interval) {  // two that take turns
    EXPECT_EQ(f.next({100, 10, interval % 2 == 1 ? 10 : 100, interval % 2 == 0 ? 10 : 100}),
              Nodes());
  }
  EXPECT_EQ(f.next({100, 10, 100, 10}), (Nodes{1, 3}));
  EXPECT_EQ(f.slow.intervals_below(1), 6);
  EXPECT_EQ(f.slow.intervals_below(3), 1) << "below, but not to be sent away";
}

TEST(SlowNodes, WhatIsBelievedHasToBeSeen) {
  const Shown well{100}, slow{10}, idle{0}, now_and_then{10, 0.6}, held_up{10, 1, 20};
  Replanner e(2);
  // Neither a word for it nor against it.
  EXPECT_EQ(e.next({100, 10}, {well, slow}), Nodes());
  EXPECT_EQ(e.next({100, 10}, {well, idle}), Nodes());
  EXPECT_EQ(e.next({100, 10}, {well, now_and_then}), Nodes());
  EXPECT_EQ(e.next({100, 10}, {well, slow}), Nodes());
  EXPECT_EQ(e.next({100, 10}, {well, slow}), Nodes{1});
  // Somebody else held it up, as it carried more.
  EXPECT_EQ(e.next({100, 10}, {well, held_up}), Nodes());
  EXPECT_EQ(e.slow.intervals_below(1), 0);
  // Seen, but not believed yet.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(e.next({100, 100}, {well, slow}), Nodes());
}

TEST(SlowNodes, OffByDefault) {
  Replanner e(2, 0);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(e.next({100, 0}), Nodes());
}

}  // namespace
}  // namespace riffle::slow_nodes_test
