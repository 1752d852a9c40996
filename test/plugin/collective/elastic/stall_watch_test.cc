#include "plugin/collective/elastic/stall_watch.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "lab/memory/memory_network.h"
#include "test/manual_clock.h"
#include "topology/base/time.h"

namespace riffle::stall_watch_test {
namespace {

constexpr std::uint64_t kLimitNs = 8 * kSecond;

using Nodes = StallWatch::Nodes;

// Node 1 of three.
struct World {
  World() { watch.start(); }
  // Seconds go by, one after the other.
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) clock.advance(kSecond);
  }

  MemoryNetwork network{3, 1};
  testing::ManualClock clock;
  testing::ClockMesh mesh{network.mesh(1), clock};
  std::optional<Nodes> waits;
  std::vector<std::vector<std::uint8_t>> told;
  std::vector<std::pair<int, Nodes>> stalls;
  StallWatch watch{
      &mesh,
      &clock,
      kLimitNs,
      {.waits_for = [this] { return waits; },
       .tell = [this](const std::vector<std::uint8_t>& message) { told.push_back(message); },
       .stalled = [this](int node, const Nodes& whom) { stalls.emplace_back(node, whom); }}};
};

TEST(StallWatch, SpeaksOnceWhenNothingHasMovedForTheLimit) {
  World w;
  w.waits = Nodes{2};
  w.pass(7);
  EXPECT_TRUE(w.told.empty());
  w.pass(2);
  EXPECT_EQ(w.told.size(), 1u);
  EXPECT_TRUE(w.stalls.empty());
  w.pass(4);
  EXPECT_EQ(w.told.size(), 1u);
  ASSERT_EQ(w.stalls.size(), 1u);
  EXPECT_EQ(w.stalls[0], std::pair(1, Nodes{2}));
  w.pass(30);
  EXPECT_EQ(w.stalls.size(), 1u);
}

TEST(StallWatch, AFrameOrNothingToDoBeginsTheTimeAnew) {
  World w;
  w.waits = Nodes{2};
  for (int i = 0; i < 6; ++i) {
    w.pass(6);
    i % 2 == 0 ? w.watch.moved() : w.waits.reset();
    w.pass(1);
    w.waits = Nodes{2};
  }
  EXPECT_TRUE(w.told.empty());
}

TEST(StallWatch, GoesOnAfterItSpoke) {
  World w;
  w.waits = Nodes{2};
  w.pass(40);
  ASSERT_EQ(w.stalls.size(), 1u);
  w.watch.moved();
  w.waits = Nodes{0};
  w.pass(7);
  EXPECT_EQ(w.told.size(), 1u);
  w.pass(33);
  EXPECT_EQ(w.told.size(), 2u);
  ASSERT_EQ(w.stalls.size(), 2u);
  EXPECT_EQ(w.stalls[1], std::pair(1, Nodes{0}));
}

TEST(StallWatch, NamesTheNodeThatDoesNotWaitItself) {
  World other, w;
  other.waits = Nodes{2};
  other.pass(9);
  ASSERT_EQ(other.told.size(), 1u);
  w.waits = Nodes{0};
  w.pass(9);
  ASSERT_TRUE(w.watch.heard(0, other.told[0]));
  w.pass(4);
  ASSERT_EQ(w.stalls.size(), 1u);
  EXPECT_EQ(w.stalls[0], std::pair(0, Nodes{2}));
}

TEST(StallWatch, WhereAllWaitForEachOtherItSaysWhatThisNodeWaitsFor) {
  World other, w;
  other.waits = Nodes{1};
  other.pass(9);
  w.waits = Nodes{0};
  w.pass(9);
  ASSERT_TRUE(w.watch.heard(0, other.told[0]));
  w.pass(4);
  ASSERT_EQ(w.stalls.size(), 1u);
  EXPECT_EQ(w.stalls[0], std::pair(1, Nodes{0}));
}

TEST(StallWatch, MessagesThatDoNotFitAreRefused) {
  World w;
  EXPECT_FALSE(w.watch.heard(0, {}));
  EXPECT_FALSE(w.watch.heard(0, {1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}));  // node 3 of 3
  EXPECT_FALSE(w.watch.heard(0, {255, 255, 255, 255, 255, 255, 255, 255}));
  EXPECT_TRUE(w.watch.heard(0, {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(StallWatch, TimeInWhichTheProcessDidNotRunDoesNotCount) {
  World w;
  w.waits = Nodes{2};
  w.pass(2);
  w.clock.advance(100 * kSecond);
  EXPECT_TRUE(w.told.empty());
  w.pass(4);
  EXPECT_TRUE(w.told.empty());
  w.pass(4);
  EXPECT_EQ(w.told.size(), 1u);
}

}  // namespace
}  // namespace riffle::stall_watch_test
