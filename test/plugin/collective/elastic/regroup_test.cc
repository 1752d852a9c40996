// Agreeing on who goes on after losses: quorums, partitions, losses on top of losses, coordinators
// that die, links that are missing between some only, nodes that say goodbye; messages delayed at
// random, in order between two nodes and in any order between others. Never two sides go on, nobody
// waits for ever.
#include "plugin/collective/elastic/regroup.h"
#include "test/sanitized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "plugin/collective/base/byte_io.h"
#include "test/plugin/collective/elastic/regroup_world.h"

namespace riffle::regroup_test {
namespace {

using testing::Nodes;
using testing::World;

TEST(Membership, MoreThanHalfOrHalfWithTheLowest) {
  const Nodes all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_TRUE(holds_quorum(all, {3, 4, 5, 6, 7}));
  EXPECT_FALSE(holds_quorum(all, {0, 1, 2}));
  EXPECT_TRUE(holds_quorum(all, {0, 5, 6, 7}));
  EXPECT_FALSE(holds_quorum(all, {4, 5, 6, 7}));
  EXPECT_TRUE(holds_quorum({2, 5}, {2}));
  EXPECT_FALSE(holds_quorum({2, 5}, {5}));
  EXPECT_FALSE(holds_quorum({2, 5, 7}, {0, 1, 2, 3}));  // others do not count
  EXPECT_FALSE(holds_quorum({}, {}));
}

TEST(Membership, WhoReachesAllOthers) {
  const auto without = [](const std::set<std::pair<int, int>>& cut) {
    return [cut](int a, int b) { return cut.count({std::min(a, b), std::max(a, b)}) == 0; };
  };
  EXPECT_EQ(mutual({0, 1, 2, 3}, without({})), (Nodes{0, 1, 2, 3}));
  EXPECT_EQ(mutual({0, 1, 2, 3}, without({{1, 2}})), (Nodes{0, 1, 3}));
  EXPECT_EQ(mutual({0, 1, 2, 3}, without({{1, 2}, {1, 3}})), (Nodes{0, 2, 3}));
  EXPECT_EQ(mutual({4}, without({})), (Nodes{4}));
}

constexpr std::uint64_t kMs = 1'000'000;

// Until a case fails, which is told then.
template <class Case>
void for_each_seed(std::uint64_t count, const Case& run) {
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    std::mt19937_64 random(seed);
    run(seed, random);
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

// How long messages and installing take; the span in which the case's faults strike.
std::uint64_t draw_times(std::mt19937_64& random, World* w) {
  w->most_delay = 1 + random() % (20 * kMs);
  w->most_install = 1 + random() % (50 * kMs);
  return 1 + random() % (200 * kMs);
}

std::uint64_t draw_notice(std::mt19937_64& random) {
  return random() % 3 == 0 ? 2'000 * kMs : random() % (30 * kMs);
}

std::vector<Nodes> draw_sides(std::mt19937_64& random, int size, std::size_t count) {
  std::vector<Nodes> sides(count);
  for (int r = 0; r < size; ++r) sides[random() % count].push_back(r);
  return sides;
}

TEST(Regroup, OneOfEightIsLost) {
  for (int victim = 0; victim < 8; ++victim) {
    World w(8, static_cast<std::uint64_t>(victim));
    w.kill(victim, 5 * kMs);
    w.run();
    w.expect_settled();
    EXPECT_EQ(w.going_on().size(), 7u);
    EXPECT_LT(w.settled(), World::kPatience + 20 * kMs);
  }
}

TEST(Regroup, AStoppedNodeNeedsNotBeNoticedByEverybody) {
  World w(8, 1);
  w.kill(0, 15'000 * kMs);  // the first notices after some time, the last after 15 s
  w.run();
  w.expect_settled();
  EXPECT_EQ(w.going_on().size(), 7u);
}

TEST(Regroup, Partitions) {
  struct Case {
    std::vector<Nodes> sides;
    Nodes goes_on;
  };
  const Case cases[] = {
      {{{0, 1, 2, 3}, {4, 5, 6, 7}}, {0, 1, 2, 3}},
      {{{4, 1, 2, 3}, {0, 5, 6, 7}}, {0, 5, 6, 7}},
      {{{0, 1, 2}, {3, 4, 5, 6, 7}}, {3, 4, 5, 6, 7}},
      {{{0, 1, 2, 3, 4}, {5, 6, 7}}, {0, 1, 2, 3, 4}},
      {{{0, 1, 2}, {3, 4, 5}, {6, 7}}, {}},
      {{{0, 1}, {2}}, {0, 1}},
      {{{0}, {1}}, {0}},
  };
  for (const Case& c : cases) {
    int size = 0;
    for (const Nodes& side : c.sides) size += static_cast<int>(side.size());
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      World w(size, seed);
      w.partition(c.sides, seed % 3 == 0 ? 0 : 500 * kMs);
      w.run();
      w.expect_settled();
      EXPECT_EQ(w.going_on(), c.goes_on) << "seed " << seed;
      for (int r = 0; r < size; ++r) {
        if (w.goes_on(r)) continue;
        EXPECT_TRUE(w.error(r).find("nodes") != std::string::npos) << w.error(r);
      }
    }
  }
}

TEST(Regroup, AMissingLinkCostsOneNode) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    World w(8, seed);
    const int a = static_cast<int>(seed % 8), b = static_cast<int>((seed / 8 + 1 + a) % 8);
    if (a == b) continue;
    w.cut(a, b, seed % 2 == 0 ? 2 * kMs : 700 * kMs);
    w.run();
    w.expect_settled();
    EXPECT_EQ(w.going_on().size(), 7u) << "link " << a << "-" << b << ", seed " << seed;
    EXPECT_TRUE(w.goes_on(std::min(a, b)) != w.goes_on(std::max(a, b)));
    for (int r = 0; r < 8; ++r) {
      if (!w.goes_on(r)) {
        EXPECT_EQ(w.error(r).find("excluded"), 0u) << w.error(r);
      }
    }
  }
}

// Kills and cuts at any moment, also while the survivors of the last one agree.
TEST(Regroup, AnythingAtAnyTime) {
  int settled_on_fewer = 0, nobody = 0;
  for_each_seed(cases(20'000), [&](std::uint64_t seed, std::mt19937_64& random) {
    const int size = 2 + static_cast<int>(random() % 9);
    World w(size, seed);
    const std::uint64_t span = draw_times(random, &w);
    std::set<int> touched;
    bool cuts = false;
    const int faults = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < faults; ++i) {
      const int a = static_cast<int>(random() % size);
      const int b = static_cast<int>((a + 1 + random() % (size - 1)) % size);
      const std::uint64_t notice = draw_notice(random);
      const bool kills = seed % 2 == 0 || random() % 3 != 0;
      touched.insert(a);
      cuts |= !kills;
      w.strike_at(random() % span, a, b, kills, notice);
    }
    w.run();
    w.expect_settled();
    // Who was never touched keeps the quorum: they go on. (Where links break and then nodes die
    // whose state the coordinator has, it may leave out the wrong end of a link.)
    if (!cuts && 2 * touched.size() < static_cast<std::size_t>(size)) {
      for (int r = 0; r < size; ++r) {
        EXPECT_TRUE(touched.count(r) > 0 || w.goes_on(r))
            << "seed " << seed << " node " << r << ": " << w.error(r);
      }
    }
    settled_on_fewer += !w.going_on().empty() && static_cast<int>(w.going_on().size()) < size;
    nobody += w.going_on().empty();
  });
  EXPECT_GT(settled_on_fewer, cases(10'000));
  EXPECT_GT(nobody, 100);
}

// Node 0 sends some away that work; others are killed or cut off meanwhile.
TEST(Regroup, WhoIsSentAwayHearsWhyAndTheOthersGoOn) {
  for_each_seed(300, [](std::uint64_t seed, std::mt19937_64& random) {
    World w(8, seed);
    w.most_delay = 1 + random() % (20 * kMs);
    const Nodes away = seed % 2 == 0 ? Nodes{2, 7} : Nodes{5};
    w.at(5 * kMs, [&w, away] { w.expel(0, away); });
    const bool kills = seed % 3 == 0;
    const int victim = seed % 6 == 0 ? 0 : 3;  // who decides, or another one
    if (kills) w.at(5 * kMs + random() % (30 * kMs), [&w, victim] { w.kill(victim, 5 * kMs); });
    w.run();
    w.expect_settled();
    Nodes left;
    for (int r = 0; r < 8; ++r) {
      const bool is_sent_away = std::find(away.begin(), away.end(), r) != away.end();
      if (!is_sent_away && !(kills && r == victim)) left.push_back(r);
      // Where node 0 dies before its word is heard they may stay.
      if (is_sent_away && !(kills && victim == 0)) {
        EXPECT_EQ(w.error(r), "excluded: too slow") << "node " << r;
      }
    }
    if (!(kills && victim == 0)) {
      EXPECT_EQ(w.going_on(), left);
    } else {
      for (const int r : left) EXPECT_TRUE(w.goes_on(r)) << w.error(r);
    }
  });
}

TEST(Regroup, WhoHasSaidGoodbyeDoesNotCount) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    World w(8, seed);
    // Five of eight leave, one after the other; then one of the three that are left is killed.
    for (int i = 0; i < 5; ++i) {
      const int who = static_cast<int>((seed + static_cast<std::uint64_t>(i)) % 8);
      w.at(static_cast<std::uint64_t>(i) * 3 * kMs,
           [&w, who, seed] { w.say_goodbye(who, 1 + seed % 7 * kMs); });
    }
    const int victim = static_cast<int>((seed + 6) % 8);
    w.at(14 * kMs, [&w, victim, seed] { w.kill(victim, 1 + seed % 5 * kMs); });
    w.run();
    w.expect_settled();
    EXPECT_EQ(w.going_on().size(), 2u) << "seed " << seed;
  }
}

// Who says goodbye at any moment, in agreements too, among kills, cuts and partitions.
TEST(Regroup, GoodbyesAmongLosses) {
  int went_on = 0, below_half = 0, nobody = 0;
  for_each_seed(cases(10'000), [&](std::uint64_t seed, std::mt19937_64& random) {
    const int size = 2 + static_cast<int>(random() % 9);
    World w(size, seed);
    const std::uint64_t span = draw_times(random, &w);
    std::set<int> leavers, killed;
    const auto any = [&] { return static_cast<int>(random() % static_cast<unsigned>(size)); };
    for (int i = static_cast<int>(random() % static_cast<unsigned>(size)); i > 0; --i) {
      const int who = any();
      leavers.insert(who);
      const std::uint64_t lives_on = random() % 2 == 0 ? 0 : random() % (300 * kMs);
      w.at(random() % span, [&w, who, lives_on] { w.say_goodbye(who, lives_on); });
    }
    const bool cuts = seed % 2 == 0;
    if (seed % 4 == 0) {
      const std::vector<Nodes> sides = draw_sides(random, size, 2 + random() % 2);
      const std::uint64_t notice = random() % (600 * kMs);
      w.at(random() % span, [&w, sides, notice] { w.partition(sides, notice); });
    }
    for (int i = static_cast<int>(random() % 3); i > 0; --i) {
      const int a = any(), b = (a + 1) % size;
      const std::uint64_t notice = draw_notice(random);
      const bool kills = !cuts || random() % 2 == 0;
      if (kills && leavers.count(a) > 0) continue;
      if (kills) killed.insert(a);
      w.strike_at(random() % span, a, b, kills, notice);
    }
    w.run();
    w.expect_settled();
    const Nodes left = w.going_on();
    const std::size_t stay = static_cast<std::size_t>(size) - leavers.size();
    if (!cuts && 2 * killed.size() < stay) {
      for (int r = 0; r < size; ++r) {
        EXPECT_TRUE(killed.count(r) > 0 || leavers.count(r) > 0 || w.goes_on(r))
            << "node " << r << ": " << w.error(r);
      }
    }
    went_on += !left.empty() && left.size() < static_cast<std::size_t>(size);
    below_half += !left.empty() && 2 * left.size() < static_cast<std::size_t>(size);
    nobody += left.empty();
  });
  EXPECT_GT(went_on, cases(5'000));
  EXPECT_GT(below_half, cases(1'000));
  EXPECT_GT(nobody, 100);
}

// Random partitions into any sides, with some of the nodes dying on top.
// A node that slept while the others went on and ended, each when it was alone: they were not on
// its side, whatever they say.
TEST(Regroup, WhoWakesUpTooLateDoesNotCountThoseWhoEnded) {
  std::string error;
  Regroup::Steps steps;
  steps.send = [](int, std::uint32_t, const Regroup::Bytes&) {};
  steps.freeze = [] {};
  steps.frames_to = [](int) { return std::uint64_t{0}; };
  steps.account = [] { return Regroup::Bytes(); };
  steps.dismiss = [](int) {};
  steps.end = [&error](const std::string& why) { error = why; };
  steps.call_later = [](std::uint64_t, const std::function<void()>&) { return std::uint64_t{1}; };
  steps.cancel = [](std::uint64_t) {};
  Regroup regroup(7, 8, {}, steps);
  ByteWriter w;
  w.blob(std::string("it ended: excluded or cut off"));
  w.number(1);
  const Regroup::Bytes gone = w.take();
  for (int peer = 1; peer < 7; ++peer) ASSERT_TRUE(regroup.received(peer, Regroup::kGone, gone));
  regroup.lost(0, "connection reset by peer");
  EXPECT_EQ(error,
            "excluded or cut off: this node, itself included, reaches only 1 of 8 nodes, the "
            "others may have gone on without it (lost node 0: connection reset by peer)");
}

TEST(Regroup, RandomPartitions) {
  int went_on = 0;
  for_each_seed(cases(5'000), [&](std::uint64_t seed, std::mt19937_64& random) {
    const int size = 2 + static_cast<int>(random() % 11);
    World w(size, seed);
    w.most_install = 1 + random() % (30 * kMs);
    const std::vector<Nodes> sides = draw_sides(random, size, 2 + random() % 3);
    const std::uint64_t notice = random() % (600 * kMs);
    w.at(random() % (50 * kMs), [&w, sides, notice] { w.partition(sides, notice); });
    for (int i = static_cast<int>(random() % 3); i > 0; --i) {
      const int victim = static_cast<int>(random() % size);
      w.at(random() % (700 * kMs), [&w, victim] { w.kill(victim, 3 * kMs); });
    }
    w.run();
    w.expect_settled();
    went_on += !w.going_on().empty();
  });
  EXPECT_GT(went_on, cases(1'000));
}

}  // namespace
}  // namespace riffle::regroup_test
