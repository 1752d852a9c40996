// Agreeing on who goes on after losses: quorums, partitions, losses on top of losses, coordinators
// that die, links that are missing between some only, nodes that say goodbye; messages delayed at
// random, in order between two nodes and in any order between others. Never two sides go on, nobody
// waits for ever.
#include "plugin/collective/regroup.h"
#include "test/sanitized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>

namespace riffle {
namespace {

using Nodes = std::vector<int>;

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

// N nodes whose only work is to agree. Time is virtual.
class World {
 public:
  World(int size, std::uint64_t seed) : random_(seed) {
    for (int r = 0; r < size; ++r) nodes_.push_back(std::make_unique<Node>());
    links_.assign(size, std::vector<Link>(size));
    for (int r = 0; r < size; ++r) {
      nodes_[r]->regroup =
          std::make_unique<Regroup>(r, size, Regroup::Options{kPatience, kDeadline}, steps(r));
    }
  }

  // The process ends; who reaches it notices within `notice`.
  void kill(int rank, std::uint64_t notice) {
    nodes_[rank]->is_dead = true;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank) cut_one_way(peer, rank, notice);
    }
  }
  void cut(int a, int b, std::uint64_t notice) {
    cut_one_way(a, b, notice);
    cut_one_way(b, a, notice);
  }
  void partition(const std::vector<Nodes>& sides, std::uint64_t notice) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      for (std::size_t j = i + 1; j < sides.size(); ++j) {
        for (const int a : sides[i]) {
          for (const int b : sides[j]) cut(a, b, notice);
        }
      }
    }
  }
  // The node needs nobody any more and says so to all it reaches; its process lives on for a while,
  // or until it hears of an agreement that it takes no part in.
  void say_goodbye(int rank, std::uint64_t lives_on) {
    Node& n = *nodes_[rank];
    if (n.is_dead || n.has_left || !n.error.empty()) return;
    n.has_left = true;
    for (const int peer : n.regroup->reached()) {
      if (peer != rank) deliver(rank, peer, [this, rank, peer] { hear_goodbye(rank, peer); });
    }
    n.regroup->stop();
    push(now_ + lives_on, [this, rank] { close(rank); });
  }
  void expel(int by, const Nodes& members) {
    std::vector<std::pair<int, std::string>> away;
    for (const int m : members) away.emplace_back(m, "too slow");
    nodes_[by]->regroup->expel(away);
  }
  void at(std::uint64_t when, std::function<void()> f) { push(when, std::move(f)); }

  void run() {
    while (!events_.empty()) {
      const Event e = events_.top();
      events_.pop();
      now_ = e.when;
      e.what();
      check_no_two_sides();
    }
  }

  int size() const { return static_cast<int>(nodes_.size()); }
  bool is_dead(int r) const { return nodes_[r]->is_dead; }
  bool has_left(int r) const { return nodes_[r]->has_left; }
  bool has_ended(int r) const { return !nodes_[r]->error.empty(); }
  const std::string& error(int r) const { return nodes_[r]->error; }
  // Lives, and is part of a term that runs.
  bool goes_on(int r) const {
    return !is_dead(r) && !has_ended(r) && !has_left(r) && nodes_[r]->regroup->is_running();
  }
  const Membership& membership(int r) const { return nodes_[r]->regroup->membership(); }
  // When the last node went on or ended.
  std::uint64_t settled() const { return settled_; }

  // Everybody who lives goes on, or has ended; those who go on agree.
  void expect_settled() {
    for (int r = 0; r < size(); ++r) {
      if (is_dead(r) || has_ended(r) || has_left(r)) continue;
      EXPECT_TRUE(goes_on(r)) << "node " << r << " still waits, in round "
                              << nodes_[r]->regroup->round();
      for (const int other : membership(r).nodes) {
        EXPECT_TRUE(goes_on(other))
            << "node " << r << " counts on node " << other << ": " << error(other);
        EXPECT_EQ(membership(other), membership(r));
      }
    }
  }
  Nodes going_on() const {
    Nodes all;
    for (int r = 0; r < size(); ++r) {
      if (goes_on(r)) all.push_back(r);
    }
    return all;
  }

  std::uint64_t most_delay = 1'000'000;
  std::uint64_t most_install = 2'000'000;
  static constexpr std::uint64_t kPatience = 300'000'000, kDeadline = 20'000'000'000;

 private:
  struct Node {
    std::unique_ptr<Regroup> regroup;
    bool is_dead = false;
    bool is_frozen = false;
    bool has_left = false;
    std::string error;
    std::set<std::uint64_t> timers;
  };
  struct Link {
    bool is_down = false;
    std::uint64_t last_arrival = 0;
  };
  struct Event {
    std::uint64_t when, order;
    std::function<void()> what;
    bool operator<(const Event& o) const {
      return when != o.when ? when > o.when : order > o.order;
    }
  };

  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
  void push(std::uint64_t when, std::function<void()> f) {
    events_.push({when, next_order_++, std::move(f)});
  }
  void cut_one_way(int from, int to, std::uint64_t notice) {
    links_[from][to].is_down = true;
    push(now_ + below(notice + 1), [this, from, to] {
      if (!nodes_[from]->is_dead) nodes_[from]->regroup->lost(to, "no sign of life");
    });
  }

  void deliver(int from, int to, const std::function<void()>& message) {
    Link& l = links_[from][to];
    if (l.is_down) return;
    l.last_arrival = std::max(l.last_arrival, now_ + 1 + below(most_delay));
    push(l.last_arrival, [this, from, to, message] {
      if (!nodes_[to]->is_dead && !links_[from][to].is_down) message();
    });
  }
  void hear_goodbye(int from, int to) {
    if (!nodes_[to]->has_left) nodes_[to]->regroup->left(from);
  }
  // What it has sent arrives.
  void close(int rank) {
    if (std::exchange(nodes_[rank]->is_dead, true)) return;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank) continue;
      push(now_ + most_delay + 1, [this, rank, peer] {
        links_[peer][rank].is_down = links_[rank][peer].is_down = true;
        if (!nodes_[peer]->is_dead) nodes_[peer]->regroup->lost(rank, "it closed");
      });
    }
  }

  Regroup::Steps steps(int r) {
    Node& n = *nodes_[r];
    Regroup::Steps s;
    s.send = [this, r](int peer, std::uint32_t kind, const Regroup::Bytes& message) {
      deliver(r, peer, [this, r, peer, kind, message] {
        if (nodes_[peer]->has_left) return close(peer);
        EXPECT_TRUE(nodes_[peer]->regroup->received(r, kind, message));
      });
    };
    s.freeze = [&n] {
      EXPECT_FALSE(n.is_frozen);
      n.is_frozen = true;
    };
    s.frames_to = [](int) { return 0; };
    s.account = [r] { return Regroup::Bytes{static_cast<std::uint8_t>(r)}; };
    s.plan = [this, r](const Membership& next, const std::vector<Regroup::Bytes>& accounts,
                       const std::function<void(Result<Regroup::Bytes>)>& planned) {
      ASSERT_EQ(accounts.size(), next.nodes.size());
      for (std::size_t i = 0; i < accounts.size(); ++i) EXPECT_EQ(accounts[i][0], next.nodes[i]);
      push(now_ + below(most_install), [this, r, planned] {
        if (!nodes_[r]->is_dead) planned(Regroup::Bytes{42});
      });
    };
    s.install = [this, r](const Regroup::Verdict& v, const std::vector<std::uint64_t>&,
                          const std::function<void(Status)>& done) {
      EXPECT_EQ(v.content, Regroup::Bytes{42});
      push(now_ + below(most_install), [this, r, done] {
        if (!nodes_[r]->is_dead) done(Status::ok());
      });
    };
    s.go = [this, &n](const Regroup::Verdict&) {
      n.is_frozen = false;
      settled_ = now_;
    };
    s.dismiss = [this, r](int peer) {  // what was sent arrives; then both know that it is over
      push(now_ + most_delay + 1, [this, r, peer] {
        links_[r][peer].is_down = true;
        if (!nodes_[peer]->is_dead) nodes_[peer]->regroup->lost(r, "it closed");
      });
    };
    s.end = [this, &n](const std::string& why) {
      settled_ = now_;
      EXPECT_EQ(n.error, "");
      n.error = why;
    };
    s.call_later = [this, r](std::uint64_t delay, const std::function<void()>& f) {
      const std::uint64_t id = ++last_timer_;
      nodes_[r]->timers.insert(id);
      push(now_ + delay, [this, r, id, f] {
        if (nodes_[r]->timers.erase(id) > 0 && !nodes_[r]->is_dead) f();
      });
      return id;
    };
    s.cancel = [&n](std::uint64_t id) { n.timers.erase(id); };
    return s;
  }

  // Of all who go on after a loss, no two may be of different terms unless one will join the other.
  void check_no_two_sides() {
    for (int a = 0; a < size(); ++a) {
      if (!goes_on(a) || membership(a).term == 0) continue;
      for (int b = a + 1; b < size(); ++b) {
        if (!goes_on(b) || membership(b).term == 0) continue;
        Nodes common;
        std::set_intersection(membership(a).nodes.begin(), membership(a).nodes.end(),
                              membership(b).nodes.begin(), membership(b).nodes.end(),
                              std::back_inserter(common));
        std::erase_if(common, [this](int r) { return has_left(r); });
        ASSERT_FALSE(common.empty()) << "nodes " << a << " and " << b << " go on separately";
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<Link>> links_;
  std::priority_queue<Event> events_;
  std::uint64_t now_ = 0, settled_ = 0, next_order_ = 0, last_timer_ = 0;
};

constexpr std::uint64_t kMs = 1'000'000;

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
        EXPECT_EQ(w.error(r).find("left behind"), 0u) << w.error(r);
      }
    }
  }
}

// Kills and cuts at any moment, also while the survivors of the last one agree.
TEST(Regroup, AnythingAtAnyTime) {
  int settled_on_fewer = 0, nobody = 0;
  for (std::uint64_t seed = 0; seed < cases(20'000); ++seed) {
    std::mt19937_64 random(seed);
    const int size = 2 + static_cast<int>(random() % 9);
    World w(size, seed);
    w.most_delay = 1 + random() % (20 * kMs);
    w.most_install = 1 + random() % (50 * kMs);
    const std::uint64_t span = 1 + random() % (200 * kMs);
    std::set<int> touched;
    bool cuts = false;
    const int faults = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < faults; ++i) {
      const int a = static_cast<int>(random() % size);
      const int b = static_cast<int>((a + 1 + random() % (size - 1)) % size);
      const std::uint64_t notice = random() % 3 == 0 ? 2'000 * kMs : random() % (30 * kMs);
      const bool kills = seed % 2 == 0 || random() % 3 != 0;
      touched.insert(a);
      cuts |= !kills;
      w.at(random() % span, [&w, a, b, notice, kills] {
        if (kills) {
          w.kill(a, notice);
        } else {
          w.cut(a, b, notice);
        }
      });
    }
    w.run();
    w.expect_settled();
    std::set<std::uint64_t> terms;
    for (const int r : w.going_on()) terms.insert(w.membership(r).term);
    EXPECT_LE(terms.size(), 1u) << "seed " << seed;
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
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
  EXPECT_GT(settled_on_fewer, cases(10'000));
  EXPECT_GT(nobody, 100);
}

// Node 0 sends some away that work; others are killed or cut off meanwhile.
TEST(Regroup, WhoIsSentAwayHearsWhyAndTheOthersGoOn) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
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
        EXPECT_EQ(w.error(r), "left behind: too slow") << "node " << r << ", seed " << seed;
      }
    }
    if (!(kills && victim == 0)) {
      EXPECT_EQ(w.going_on(), left) << "seed " << seed;
    } else {
      for (const int r : left) EXPECT_TRUE(w.goes_on(r)) << w.error(r) << ", seed " << seed;
    }
  }
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
  for (std::uint64_t seed = 0; seed < cases(10'000); ++seed) {
    std::mt19937_64 random(seed);
    const int size = 2 + static_cast<int>(random() % 9);
    World w(size, seed);
    w.most_delay = 1 + random() % (20 * kMs);
    w.most_install = 1 + random() % (50 * kMs);
    const std::uint64_t span = 1 + random() % (200 * kMs);
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
      std::vector<Nodes> sides(2 + random() % 2);
      for (int r = 0; r < size; ++r) sides[random() % sides.size()].push_back(r);
      const std::uint64_t notice = random() % (600 * kMs);
      w.at(random() % span, [&w, sides, notice] { w.partition(sides, notice); });
    }
    for (int i = static_cast<int>(random() % 3); i > 0; --i) {
      const int a = any(), b = (a + 1) % size;
      const std::uint64_t notice = random() % 3 == 0 ? 2'000 * kMs : random() % (30 * kMs);
      const bool kills = !cuts || random() % 2 == 0;
      if (kills && leavers.count(a) > 0) continue;
      if (kills) killed.insert(a);
      w.at(random() % span, [&w, a, b, notice, kills] {
        if (kills) {
          w.kill(a, notice);
        } else if (a != b) {
          w.cut(a, b, notice);
        }
      });
    }
    w.run();
    w.expect_settled();
    const Nodes left = w.going_on();
    std::set<std::uint64_t> terms;
    for (const int r : left) terms.insert(w.membership(r).term);
    EXPECT_LE(terms.size(), 1u);
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
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
  EXPECT_GT(went_on, cases(5'000));
  EXPECT_GT(below_half, cases(1'000));
  EXPECT_GT(nobody, 100);
}

// Random partitions into any sides, with some of the nodes dying on top.
TEST(Regroup, RandomPartitions) {
  int went_on = 0;
  for (std::uint64_t seed = 0; seed < cases(5'000); ++seed) {
    std::mt19937_64 random(seed);
    const int size = 2 + static_cast<int>(random() % 11);
    World w(size, seed);
    w.most_install = 1 + random() % (30 * kMs);
    std::vector<Nodes> sides(2 + random() % 3);
    for (int r = 0; r < size; ++r) sides[random() % sides.size()].push_back(r);
    const std::uint64_t notice = random() % (600 * kMs);
    w.at(random() % (50 * kMs), [&w, sides, notice] { w.partition(sides, notice); });
    for (int i = static_cast<int>(random() % 3); i > 0; --i) {
      const int victim = static_cast<int>(random() % size);
      w.at(random() % (700 * kMs), [&w, victim] { w.kill(victim, 3 * kMs); });
    }
    w.run();
    w.expect_settled();
    std::set<std::uint64_t> terms;
    for (const int r : w.going_on()) terms.insert(w.membership(r).term);
    EXPECT_LE(terms.size(), 1u);
    went_on += !w.going_on().empty();
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
  EXPECT_GT(went_on, cases(1'000));
}

}  // namespace
}  // namespace riffle
