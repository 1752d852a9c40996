// topology/plan/loads.h against plain enumeration of every message that a pattern sends; and what
// plans for fast networks take by the model, as messages cost less (the table in
// docs/algorithms.md).
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "test/sanitized.h"
#include "topology/plan/loads.h"
#include "topology/plan/planner.h"

namespace riffle::planner_loads_test {
namespace {

struct Ledger {
  explicit Ledger(const FabricView& v) : view(v), loads(v) {}

  void message(int from, int to, std::uint64_t units) {
    if (units == 0) return;
    loads.node_out[from].add(units, 1);
    loads.node_in[to].add(units, 1);
    const int a = view.fabric().nodes[from].rack;
    const int b = view.fabric().nodes[to].rack;
    if (a == b) return;
    loads.rack_up[view.rack_of(from)].add(units, 1);
    loads.rack_down[view.rack_of(to)].add(units, 1);
  }

  void run(const Group& g, Phase phase) {
    const int p = static_cast<int>(g.members.size());
    const auto shard = [&](int j) { return g.cuts[j + 1] - g.cuts[j]; };
    if (g.pattern == Pattern::kDirect) {
      for (int i = 0; i < p; ++i) {
        for (int j = 0; j < p; ++j) {
          if (i == j) continue;
          if (phase == Phase::kReduceScatter) {
            message(g.members[i], g.members[j], shard(j));
          } else {
            message(g.members[j], g.members[i], shard(j));
          }
        }
      }
      return;
    }
    if (g.pattern != Pattern::kRing) return run_trees(g, phase);
    // Shard j ends its first tour at member j and starts its second from there.
    for (int j = 0; j < p; ++j) {
      const int start = phase == Phase::kReduceScatter ? j + 1 : j;
      for (int step = 0; step < p - 1; ++step) {
        message(g.members[(start + step) % p], g.members[(start + step + 1) % p], shard(j));
      }
    }
  }

  // Every member but the owner sends a shard up once and gets it once.
  void run_trees(const Group& g, Phase phase) {
    const int p = static_cast<int>(g.members.size());
    const GroupExchange& exchange = exchange_of(g.pattern);
    for (int j = 0; j < p; ++j) {
      for (int m = 0; m < p; ++m) {
        if (m == j) continue;
        const std::uint64_t units = g.cuts[j + 1] - g.cuts[j];
        if (phase == Phase::kReduceScatter) {
          message(g.members[m], g.members[exchange.partial_to(p, j, m)], units);
        } else {
          message(g.members[exchange.sum_from(p, j, m)], g.members[m], units);
        }
      }
    }
  }

  const FabricView& view;
  Loads loads;
};

TEST(Loads, EqualTheSumOfAllMessages) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    Fabric f = even_fabric(10, 1000);
    f.racks = {{"a", 0, 0}, {"empty", 0, 0}, {"b", 0, 0}, {"c", 0, 0}};
    for (NodeLink& n : f.nodes) n.rack = std::vector{0, 2, 3}[random() % 3];
    const FabricView view(f);
    Level level;
    for (int first : {0, 5}) {
      Group g;
      g.pattern = kPatterns[random() % kPatterns.size()];
      const int size = 2 + static_cast<int>(random() % 4);
      g.cuts.push_back(static_cast<Share>(random() % 100));
      for (int k = 0; k < size; ++k) {
        g.members.push_back(first + (k * 2 + 1) % 5);  // not in rising order
        const bool empty = random() % 3 == 0;
        g.cuts.push_back(g.cuts.back() + (empty ? 0 : 1 + static_cast<Share>(random() % 1000)));
      }
      level.groups.push_back(g);
    }
    for (Phase phase : {Phase::kReduceScatter, Phase::kAllGather}) {
      Ledger ledger(view);
      for (const Group& g : level.groups) ledger.run(g, phase);
      const Loads loads = loads_of(view, level, phase);
      EXPECT_TRUE(loads.node_out == ledger.loads.node_out) << i;
      EXPECT_TRUE(loads.node_in == ledger.loads.node_in) << i;
      EXPECT_TRUE(loads.rack_up == ledger.loads.rack_up) << i;
      EXPECT_TRUE(loads.rack_down == ledger.loads.rack_down) << i;
    }
  }
}

TEST(Loads, SlowestNamesTheLink) {
  Fabric f = even_fabric(4, 1000);
  f.racks = {{"a", 100, 0}, {"b", 0, 0}};
  f.nodes[3].rack = 1;
  const FabricView view(f);
  const Share quarter = kShareUnits / 4;
  const Level level{
      {{Pattern::kDirect, {0, 1, 2, 3}, {0, quarter, 2 * quarter, 3 * quarter, kShareUnits}}}};
  // Three nodes send a quarter each out of rack a: 750,000 bytes at 100 kbit/s.
  const Slowest s = slowest(view, loads_of(view, level, Phase::kReduceScatter), 1e6, 0);
  EXPECT_EQ(s.link, "uplink of rack a");
  EXPECT_DOUBLE_EQ(s.time_us, 60e6);
  // ... in three frames.
  EXPECT_DOUBLE_EQ(slowest(view, loads_of(view, level, Phase::kReduceScatter), 1e6, 100).time_us,
                   60e6 + 3 * 100 * 8000 / 100.0);
}

// ---- the price of a message ----

constexpr std::int64_t kGbit = 1'000'000;  // kbit/s
constexpr std::int64_t kBeforeNs = 5000, kMeasuredNs = 1000, kTwoThreadsNs = 500;

// Uplinks carry a quarter of what the rack's nodes do.
Fabric in_racks(const std::vector<int>& sizes, const std::vector<std::int64_t>& rates_in_turn) {
  Fabric f;
  for (const int size : sizes) {
    std::int64_t sum_kbps = 0;
    for (int i = 0; i < size; ++i) {
      NodeLink node;
      node.name = "n" + std::to_string(f.nodes.size());
      node.rack = static_cast<int>(f.racks.size());
      node.out_kbps = node.in_kbps = rates_in_turn[f.nodes.size() % rates_in_turn.size()];
      sum_kbps += node.out_kbps;
      f.nodes.push_back(node);
    }
    f.racks.push_back({"r" + std::to_string(f.racks.size()), sum_kbps / 4, sum_kbps / 4});
  }
  return f;
}

struct Priced {
  double x_bound = 0;
  std::string limit;
};

Priced priced(const Fabric& fabric, std::uint64_t bytes, std::int64_t message_ns) {
  PlanOptions options;
  options.message_ns = message_ns;
  const auto choice = plan(fabric, bytes, options);
  EXPECT_TRUE(choice) << choice.status().message();
  if (!choice) return {};
  return {choice->time_us / choice->bound_us, choice->candidates.front().limit};
}

TEST(MessagePrice, NodesOf25GbitInEvenRacks) {
  const Fabric f = in_racks({7, 7, 7, 7, 7}, {25 * kGbit});
  EXPECT_LE(priced(f, 16 << 20, kBeforeNs).x_bound, 1.07);
  EXPECT_LE(priced(f, 16 << 20, kMessageNs).x_bound, 1.06);
  EXPECT_LE(priced(f, 16 << 20, kTwoThreadsNs).x_bound, 1.05);
}

TEST(MessagePrice, NodesOf25And50GbitInUnevenRacks) {
  const Fabric f = in_racks({16, 16, 3}, {25 * kGbit, 50 * kGbit});
  const Priced before = priced(f, 16 << 20, kBeforeNs);
  EXPECT_GT(before.x_bound, 1.3);
  EXPECT_EQ(before.limit, "processing of messages");
  for (const std::int64_t ns : {kMessageNs, kMeasuredNs, kTwoThreadsNs}) {
    EXPECT_NE(priced(f, 16 << 20, ns).limit, "processing of messages") << ns;
  }
  EXPECT_LE(priced(f, 16 << 20, kMessageNs).x_bound, 1.14);
  EXPECT_LE(priced(f, 16 << 20, kMeasuredNs).x_bound, 1.115);
  EXPECT_LE(priced(f, 16 << 20, kTwoThreadsNs).x_bound, 1.105);
}

// Plans of three and more levels: their bubbles are 12 % of the links' time.
TEST(MessagePrice, ManyNodesOf100Gbit) {
  if (kIsSanitized) GTEST_SKIP() << "would take minutes";
  Fabric f = even_fabric(16'384, 100 * kGbit);
  f.latency_us = 5;
  EXPECT_GT(priced(f, 16 << 20, kBeforeNs).x_bound, 1.4);
  EXPECT_LE(priced(f, 16 << 20, kMeasuredNs).x_bound, 1.19);
}

}  // namespace
}  // namespace riffle::planner_loads_test
