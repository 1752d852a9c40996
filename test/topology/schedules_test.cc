// topology/plan/schedules: what is chosen for real and for odd fabrics, and that whatever is chosen
// keeps its promises.
#include "topology/plan/schedules/schedules.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "test/sanitized.h"
#include "test/topology/plan_executor.h"
#include "topology/base/seeded_random.h"
#include "topology/plan/planner.h"
#include "topology/plan/schedules/contraction.h"
#include "topology/plan/schedules/families.h"

namespace riffle::schedules_test {
namespace {

constexpr std::uint64_t kBytes = 32 << 20;

// Ranks are dealt out over the racks in turn, as in the profiles.
Fabric racks(int count, int size, std::int64_t rate_kbps, std::int64_t uplink_kbps) {
  Fabric f = even_fabric(count * size, rate_kbps);
  f.racks.clear();
  for (int r = 0; r < count; ++r) {
    f.racks.push_back({"r" + std::to_string(r), uplink_kbps, uplink_kbps});
  }
  for (int n = 0; n < f.size(); ++n) f.nodes[static_cast<std::size_t>(n)].rack = n % count;
  return f;
}

Fabric with_slow(int nodes, const std::vector<int>& slow) {
  Fabric f = even_fabric(nodes, 400'000);
  for (int n : slow) {
    f.nodes[static_cast<std::size_t>(n)].in_kbps = 100'000;
    f.nodes[static_cast<std::size_t>(n)].out_kbps = 100'000;
  }
  return f;
}

ScheduleChoice chosen(const Fabric& fabric, ScheduleMode mode, ScheduleOptions options = {}) {
  options.bytes = kBytes;
  const auto choice = choose_schedule(fabric, mode, options);
  if (!choice) {
    ADD_FAILURE() << fabric.size() << " nodes: " << choice.status().message();
    return {};
  }
  return *choice;
}

double gain(const ScheduleChoice& choice) { return choice.exact_us / choice.quality.time_us; }

// The promises of patterns.h, checked on the table alone.
void expect_promises(const ScheduleChoice& choice, const ScheduleOptions& options) {
  const ScheduleTable& t = choice.table;
  ASSERT_TRUE(validate(t)) << validate(t).message();
  ASSERT_TRUE(verify_contraction(t)) << verify_contraction(t).message();
  EXPECT_LE(choice.quality.deviation, options.max_deviation);
  const auto steps = static_cast<std::uint64_t>(t.steps);
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(t.lanes); ++lane) {
    std::vector<std::uint64_t> company(static_cast<std::size_t>(t.nodes), 0);
    std::vector<std::uint64_t> alone(company.size(), 0), longest(company.size(), 0);
    for (std::uint64_t step = 0; step < 2 * steps; ++step) {
      for (std::uint64_t& n : alone) ++n;
      for (const Group& g : t.at(step, lane).levels[0].groups) {
        for (int m : g.members) {
          company[static_cast<std::size_t>(m)] += g.members.size() - 1;
          alone[static_cast<std::size_t>(m)] = 0;
        }
      }
      for (std::size_t n = 0; n < alone.size(); ++n) longest[n] = std::max(longest[n], alone[n]);
    }
    for (std::size_t n = 0; n < company.size(); ++n) {
      EXPECT_GE(company[n], 2 * steps) << "node " << n << ": groups of fewer than 2 on average";
      EXPECT_LT(longest[n], 4u) << "node " << n << " does not meet others every 4th step";
    }
  }
}

TEST(Patterns, AreAsMuchFasterAsTheProfilesAsk) {
  struct Case {
    const char* name;
    Fabric fabric;
    double least_gain;
  };
  for (const Case& c :
       {Case{"racks8", racks(2, 4, 400'000, 200'000), 1.7},
        Case{"racks8-tight", racks(2, 4, 400'000, 50'000), 3},
        Case{"contention8", with_slow(8, {3}), 2}, Case{"uniform8", even_fabric(8, 400'000), 1},
        Case{"straggler8", with_slow(8, {3}), 2},
        Case{"racks12", racks(3, 4, 300'000, 300'000), 1.4},
        Case{"mixed16", with_slow(16, {1, 3, 5, 7, 9, 11, 13, 15}), 1.5}}) {
    const ScheduleChoice choice = chosen(c.fabric, ScheduleMode::kDsSync);
    EXPECT_GE(gain(choice), c.least_gain) << c.name << ": " << choice.reason;
    expect_promises(choice, {});
  }
}

TEST(Patterns, OnlyAPartOfTheChunksCrossesTheUplinkInAStep) {
  const Fabric f = racks(2, 4, 400'000, 200'000);
  const ScheduleChoice choice = chosen(f, ScheduleMode::kDsSync);
  for (int step = 0; step < choice.table.steps; ++step) {
    PlanSet lanes;
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(choice.table.lanes); ++lane) {
      lanes.lanes.push_back(choice.table.at(static_cast<std::uint64_t>(step), lane));
    }
    double uplink_us = 0, node_us = 0;
    for (const LinkTime& link : link_times(f, lanes, kBytes)) {
      double& longest = link.link.find("uplink") == 0 ? uplink_us : node_us;
      longest = std::max(longest, link.time_us);
    }
    const double node_least_us = static_cast<double>(kBytes) * 8000 / 400'000;
    EXPECT_GT(uplink_us, 0);
    EXPECT_LE(uplink_us, 1.15 * node_least_us) << "step " << step;
    EXPECT_LE(node_us, 1.15 * node_least_us) << "step " << step;
  }
}

TEST(Patterns, KeepTheirPromisesForAnyNumberOfNodes) {
  std::vector<int> sizes(kIsSanitized ? 15 : 39);
  std::iota(sizes.begin(), sizes.end(), 2);
  for (int n : {64, 97, 100, 127, 128}) sizes.push_back(n);
  for (int nodes : sizes) {
    const Fabric f = even_fabric(nodes, 400'000);
    for (const ScheduleMode mode : {ScheduleMode::kDsSync, ScheduleMode::kMoshpit}) {
      const ScheduleChoice choice = chosen(f, mode);
      SCOPED_TRACE(std::to_string(nodes) + " nodes, " + choice.table.name);
      expect_promises(choice, {});
      EXPECT_GE(gain(choice), 0.97);
    }
  }
}

TEST(Patterns, KeepTheirPromisesAtAThousandNodes) {
  for (int nodes : {1021, 1024}) {  // a prime and a power of two
    if (kIsSanitized && nodes == 1024) continue;
    const ScheduleChoice choice = chosen(even_fabric(nodes, 400'000), ScheduleMode::kDsSync);
    SCOPED_TRACE(choice.table.name);
    ASSERT_TRUE(validate(choice.table));
    EXPECT_TRUE(verify_contraction(choice.table));
    EXPECT_LE(choice.quality.deviation, ScheduleOptions{}.max_deviation);
    EXPECT_GE(gain(choice), 1.7);
  }
}

TEST(Patterns, KeepTheirPromisesOnRacksOfAllKinds) {
  for (const auto& [count, size] :
       {std::pair{2, 2}, {2, 3}, {2, 5}, {3, 3}, {4, 4}, {5, 2}, {8, 1}}) {
    for (const std::int64_t uplink : {50'000, 200'000, 3'200'000}) {
      if (kIsSanitized && (uplink != 200'000 || count * size > 9)) continue;
      SCOPED_TRACE(std::to_string(count) + " racks of " + std::to_string(size) + ", uplink " +
                   std::to_string(uplink));
      const ScheduleChoice choice =
          chosen(racks(count, size, 400'000, uplink), ScheduleMode::kDsSync);
      SCOPED_TRACE(choice.table.name);
      expect_promises(choice, {});
    }
  }
  Fabric uneven = racks(2, 4, 400'000, 100'000);
  uneven.nodes[1].rack = uneven.nodes[3].rack = 0;  // 6 and 2
  expect_promises(chosen(uneven, ScheduleMode::kDsSync), {});
  Fabric slow = racks(2, 4, 400'000, 200'000);
  slow.nodes[5].in_kbps = slow.nodes[5].out_kbps = 50'000;
  const ScheduleChoice choice = chosen(slow, ScheduleMode::kDsSync);
  expect_promises(choice, {});
  EXPECT_GE(gain(choice), 1.4) << choice.reason;
}

TEST(Patterns, KeepTheirPromisesOnRandomFabrics) {
  SeededRandom random(17);
  const std::vector<std::int64_t> rates{1'000, 50'000, 100'000, 400'000, 1'000'000, 100'000'000};
  for (int i = 0; i < cases(40); ++i) {
    Fabric f = even_fabric(static_cast<int>(2 + random.below(13)), 400'000);
    f.latency_us = static_cast<std::int64_t>(random.below(2000));
    f.racks.clear();
    for (std::size_t r = 0; r < 1 + random.below(4); ++r) {
      const std::int64_t up = random.below(3) == 0 ? 0 : rates[random.below(rates.size())];
      f.racks.push_back({"r" + std::to_string(r), up, up});
    }
    for (NodeLink& node : f.nodes) {
      node.rack = static_cast<int>(random.below(f.racks.size()));  // some racks may be empty
      if (random.below(3) == 0) node.out_kbps = rates[random.below(rates.size())];
      if (random.below(3) == 0) node.in_kbps = rates[random.below(rates.size())];
    }
    ScheduleOptions options;
    options.seed = random.next();
    for (const ScheduleMode mode : {ScheduleMode::kDsSync, ScheduleMode::kMoshpit}) {
      const ScheduleChoice choice = chosen(f, mode, options);
      SCOPED_TRACE("fabric " + std::to_string(i) + ", " + choice.table.name);
      expect_promises(choice, options);
    }
  }
}

TEST(Patterns, AreTheSameEverywhereAndFollowTheSeed) {
  const Fabric f = racks(2, 4, 400'000, 200'000);
  ScheduleOptions options;
  const ScheduleChoice one = chosen(f, ScheduleMode::kDsSync, options);
  EXPECT_EQ(one.table, chosen(f, ScheduleMode::kDsSync, options).table);
  std::set<std::vector<int>> partners;
  const std::uint64_t seeds = kIsSanitized ? 3 : 8;
  for (options.seed = 1; options.seed <= seeds; ++options.seed) {
    const ScheduleTable t = chosen(f, ScheduleMode::kDsSync, options).table;
    std::vector<int> of_first;
    for (std::uint64_t step = 0; step < 4; ++step) {
      for (const Group& g : t.at(step, 0).levels[0].groups) {
        if (std::find(g.members.begin(), g.members.end(), 0) == g.members.end()) continue;
        of_first.insert(of_first.end(), g.members.begin(), g.members.end());
      }
    }
    partners.insert(of_first);
  }
  EXPECT_GE(partners.size(), kIsSanitized ? 2u : 3u);
  options.seed = 1;
  options.shuffles = 4;
  const ScheduleChoice shuffled = chosen(f, ScheduleMode::kDsSync, options);
  EXPECT_EQ(shuffled.table.steps, 4 * one.table.steps);
  expect_promises(shuffled, options);
}

TEST(Patterns, FullGridsAreTheDefaultWhereTheyAreAsFast) {
  const ScheduleChoice choice = chosen(even_fabric(16, 1'000'000), ScheduleMode::kDsSync);
  EXPECT_EQ(choice.dimensions, (std::vector<int>{2, 2, 2, 2}));
  ScheduleOptions options;
  options.dimensions = 2;
  const ScheduleChoice square = chosen(even_fabric(16, 1'000'000), ScheduleMode::kMoshpit, options);
  EXPECT_EQ(square.dimensions.size(), 2u);
  options = {};
  options.only = "grid 4 x 4";
  const ScheduleChoice named = chosen(even_fabric(16, 1'000'000), ScheduleMode::kDsSync, options);
  EXPECT_NEAR(named.quality.deviation, 0.1875, 1e-9);
  EXPECT_LT(named.quality.norm, 1e-20);
}

TEST(Patterns, MoshpitTakesRandomGroupsWhereAGridWouldBeEmpty) {
  // 17 nodes: a grid of 5 ^ 2 or 3 ^ 3 would be less than 75 % full.
  for (const ScheduleCandidate& c :
       chosen(even_fabric(17, 400'000), ScheduleMode::kMoshpit).candidates) {
    EXPECT_NE(c.name, "incomplete grid 5 ^ 2");
    EXPECT_NE(c.name, "incomplete grid 3 ^ 3");
  }
  bool has_grid = false;
  for (const ScheduleCandidate& c :
       chosen(even_fabric(23, 400'000), ScheduleMode::kMoshpit).candidates) {
    has_grid |= c.name == "incomplete grid 5 ^ 2" && c.refused.empty();
  }
  EXPECT_TRUE(has_grid);
}

TEST(Patterns, ShadowRoundsWeighTimeAgainstMixing) {
  const Fabric f = racks(2, 4, 400'000, 200'000);
  ScheduleOptions options;
  options.round_steps = 4;
  const ScheduleChoice choice = chosen(f, ScheduleMode::kShadowSync, options);
  for (const ScheduleCandidate& c : choice.candidates) {
    if (!c.refused.empty()) continue;
    EXPECT_LE(choice.quality.time_us * choice.quality.deviation, 1.06 * c.time_us * c.deviation)
        << c.name;
  }
  bool has_everybody = false;
  for (const ScheduleCandidate& c : choice.candidates) {
    if (c.name != "all nodes") continue;
    has_everybody = true;
    EXPECT_NEAR(c.deviation, delta_deviation(8, 1, 4), 1e-6);
  }
  EXPECT_TRUE(has_everybody);
}

TEST(Patterns, BadInputIsNamed) {
  const Fabric f = even_fabric(8, 400'000);
  const auto refusal = [&](const Fabric& fabric, const ScheduleOptions& o) {
    const auto choice = choose_schedule(fabric, ScheduleMode::kDsSync, o);
    return choice ? std::string() : choice.status().message();
  };
  ScheduleOptions o;
  EXPECT_NE(refusal(even_fabric(1, 1000), o).find("from 2"), std::string::npos);
  o.only = "heptagon";
  EXPECT_NE(refusal(f, o).find("\"heptagon\""), std::string::npos);
  EXPECT_NE(refusal(f, o).find("\"grid 2 x 2 x 2\""), std::string::npos);
  o = {};
  o.max_lanes = 65;
  EXPECT_NE(refusal(f, o).find("65"), std::string::npos);
  o = {};
  o.max_deviation = 0;
  EXPECT_NE(refusal(f, o).find("deviation"), std::string::npos);
  o.max_deviation = 1e-3;
  o.only = "grid 2 x 2 x 2";
  EXPECT_NE(refusal(f, o).find("0.5"), std::string::npos) << refusal(f, o);
  o = {};
  o.delta = 2;
  EXPECT_NE(refusal(f, o).find("delta"), std::string::npos);
  o = {};
  o.round_steps = 0;
  EXPECT_NE(refusal(f, o).find("rounds"), std::string::npos);
}

TEST(Patterns, BrokenTablesAreRefused) {
  const ScheduleTable good = chosen(even_fabric(8, 400'000), ScheduleMode::kDsSync).table;
  ASSERT_TRUE(validate(good));
  const auto broken = [&](auto&& change) {
    ScheduleTable t = good;
    change(t);
    return !validate(t);
  };
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.steps = 0; }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.steps = 1000; }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.lanes = 65; }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.lanes = 2; }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.nodes = 9; }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.chunk_bytes = 1; }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.table[0] = 1000; }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.partitions[0].levels.push_back({}); }));
  EXPECT_TRUE(broken([](ScheduleTable& t) { t.partitions[0].levels.clear(); }));
  const auto broken_group = [&](auto&& change) {
    return broken([&](ScheduleTable& t) { change(t.partitions[0].levels[0].groups); });
  };
  using Groups = std::vector<Group>;
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].pattern = Pattern::kRing; }));
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].cuts.front() = 1; }));
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].cuts.back() = kShareUnits - 1; }));
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].cuts.pop_back(); }));
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].cuts[1] = kShareUnits + 1; }));
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].members[0] = 8; }));
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].members[0] = -1; }));
  EXPECT_TRUE(broken_group([](Groups& g) { g[0].members[0] = g[1].members[0]; }));
  EXPECT_TRUE(broken_group([](Groups& g) {
    g[0].members.resize(1);
    g[0].cuts = {0, kShareUnits};
  }));
}

}  // namespace
}  // namespace riffle::schedules_test
