// N nodes whose only work is to agree on who goes on (regroup.h). Time is virtual; messages are
// delayed at random, in order between two nodes and in any order between others.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/elastic/regroup.h"

namespace riffle::testing {

using Nodes = std::vector<int>;

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
  // Node a is killed, or its link to b is cut.
  void strike_at(std::uint64_t when, int a, int b, bool kills, std::uint64_t notice) {
    at(when, [this, a, b, kills, notice] { kills ? kill(a, notice) : cut(a, b, notice); });
  }

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
    std::set<std::uint64_t> terms;
    for (const int r : going_on()) terms.insert(membership(r).term);
    EXPECT_LE(terms.size(), 1u);
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

  std::map<std::uint32_t, Regroup::Bytes> first_sent;  // of each kind of message
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
      first_sent.emplace(kind, message);
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

}  // namespace riffle::testing
