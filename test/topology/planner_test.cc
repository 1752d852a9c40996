// topology/plan/planner.h: the known fabrics, and properties on random ones.
#include <gtest/gtest.h>

#include <random>

#include "test/sanitized.h"
#include "test/topology/plan_executor.h"
#include "topology/plan/candidate.h"
#include "topology/plan/cost.h"
#include "topology/plan/limits.h"
#include "topology/plan/planner.h"
#include "topology/plan/replan.h"

namespace riffle::planner_test {
namespace {

constexpr std::uint64_t k64MiB = 64 << 20;

Fabric nodes(std::vector<std::int64_t> mbps) {
  Fabric f = even_fabric(static_cast<int>(mbps.size()), 1);
  for (std::size_t n = 0; n < mbps.size(); ++n) {
    f.nodes[n].out_kbps = f.nodes[n].in_kbps = mbps[n] * 1000;
  }
  return f;
}

Fabric racks(int count, int size, std::int64_t mbps, std::int64_t uplink_mbps, bool interleaved) {
  Fabric f = even_fabric(count * size, mbps * 1000);
  f.racks.clear();
  for (int r = 0; r < count; ++r) {
    f.racks.push_back({"r" + std::to_string(r), uplink_mbps * 1000, uplink_mbps * 1000});
  }
  for (int n = 0; n < f.size(); ++n) f.nodes[n].rack = interleaved ? n % count : n / size;
  return f;
}

Fabric mixed16() {
  std::vector<std::int64_t> rates;
  for (int n = 0; n < 16; ++n) rates.push_back(n % 2 ? 100 : 400);
  return nodes(rates);
}

PlanChoice best(const Fabric& fabric, std::uint64_t bytes = k64MiB) {
  auto choice = plan(fabric, bytes, {});
  EXPECT_TRUE(choice.is_ok()) << choice.status().message();
  EXPECT_TRUE(validate(choice->plans).is_ok());
  for (const GroupPlan& lane : choice->plans.lanes) EXPECT_EQ(run_on_integers(lane, 1000, 1), "");
  return *choice;
}

// The model counts headers, frames and the time until all levels are busy: about 3 to 5 % at 64 MiB
// on two levels.
constexpr double kNear = 1.05;

double x_bound(const PlanChoice& c) { return c.time_us / c.bound_us; }

// 64 MiB over 1 Mbit/s, the unit of the bounds below.
constexpr double kUs = 64.0 * 1024 * 1024 * 8;

TEST(Planner, Uniform8) {
  const PlanChoice c = best(even_fabric(8, 400'000));
  EXPECT_NEAR(c.bound_us, 1.75 * kUs / 400, 1);
  EXPECT_LE(x_bound(c), 1.02) << c.reason;
  EXPECT_EQ(c.plans.name, "direct");
}

// On 16 nodes the direct plan would be as fast, if processors and queues were as the model has
// them.
TEST(Planner, FewFlowsPerNodeWhereTimesAreAlike) {
  EXPECT_EQ(best(even_fabric(9, 400'000)).plans.name, "direct");
  EXPECT_EQ(best(even_fabric(16, 400'000)).plans.name, "ring");
}

// random:25: a grid of weighted seats is within 3 % by the model, and took 10 % longer when
// emulated.
TEST(Planner, UnevenNodesDoNotWaitForEachOtherAtEveryLevel) {
  const PlanChoice c = best(nodes({200, 200, 200, 250, 100, 200, 200, 250, 200, 200, 200, 200}));
  EXPECT_EQ(c.plans.name, "direct");
}

TEST(Planner, Straggler8OwnsNothing) {
  const PlanChoice c = best(nodes({400, 400, 400, 100, 400, 400, 400, 400}));
  EXPECT_NEAR(c.bound_us, kUs / 100, 1);
  EXPECT_LE(x_bound(c), 1.02) << c.reason;
  for (const GroupPlan& lane : c.plans.lanes) {
    for (const Group& g : lane.levels[0].groups) {
      for (std::size_t j = 0; j < g.members.size(); ++j) {
        const Share owned = g.cuts[j + 1] - g.cuts[j];
        EXPECT_EQ(owned == 0, g.members[j] == 3);
      }
    }
  }
}

TEST(Planner, Racks8) {
  for (bool interleaved : {true, false}) {
    const PlanChoice c = best(racks(2, 4, 400, 200, interleaved));
    EXPECT_NEAR(c.bound_us, kUs / 200, 1);
    EXPECT_LE(x_bound(c), kNear) << c.reason;
    EXPECT_EQ(c.plans.name.substr(0, 13), "racks x rails");
    EXPECT_NE(c.reason.find("link of rack"), std::string::npos) << c.reason;
  }
}

TEST(Planner, Racks8Tight) {
  const PlanChoice c = best(racks(2, 4, 400, 50, true));
  EXPECT_NEAR(c.bound_us, kUs / 50, 1);
  EXPECT_LE(x_bound(c), kNear) << c.reason;
}

TEST(Planner, Mixed16) {
  const PlanChoice c = best(mixed16());
  EXPECT_NEAR(c.bound_us, kUs / 100, 1);
  EXPECT_LE(x_bound(c), kNear) << c.reason;
}

TEST(Planner, Racks12) {
  const PlanChoice c = best(racks(3, 4, 300, 300, true));
  EXPECT_NEAR(c.bound_us, 22.0 / 12 * kUs / 300, 1);
  EXPECT_LE(x_bound(c), kNear) << c.reason;
}

TEST(Planner, UnevenRacksShareTheBufferByCommonRefinement) {
  Fabric f = racks(2, 4, 400, 200, false);
  f.nodes[3].rack = 1;  // 3 and 5
  const PlanChoice c = best(f);
  EXPECT_LE(x_bound(c), kNear) << c.reason;
  EXPECT_EQ(c.plans.name.substr(0, 13), "racks x rails");
}

TEST(Planner, UnevenUplinksOwnInProportion) {
  Fabric f = racks(3, 4, 400, 0, true);
  for (int r = 0; r < 3; ++r) f.racks[r].up_kbps = f.racks[r].down_kbps = 200'000 * (r + 1);
  EXPECT_LE(x_bound(best(f)), kNear) << best(f).reason;
  f.racks[0].up_kbps = f.racks[0].down_kbps = 300'000;  // now the sum of the uplinks limits
  f.racks[1] = f.racks[2] = f.racks[0];
  f.racks[2].up_kbps = f.racks[2].down_kbps = 400'000;
  EXPECT_LE(x_bound(best(f)), kNear) << best(f).reason;
}

// Groups of many sizes wait for each other: what a mixture gains by the model has to be clear.
TEST(Planner, AMixtureThatGainsLittleIsLeft) {
  Fabric f = racks(2, 4, 100, 116, false);
  f.nodes.pop_back();
  for (const int fast : {2, 6}) f.nodes[fast].out_kbps = f.nodes[fast].in_kbps = 340'000;
  const PlanChoice c = best(f);
  EXPECT_EQ(c.plans.name, "racks x rails") << c.reason;
  const auto is_mixture = [](const Candidate& x) {
    return x.name.find("mixtures") != std::string::npos;
  };
  const auto mixture = std::find_if(c.candidates.begin(), c.candidates.end(), is_mixture);
  ASSERT_NE(mixture, c.candidates.end());
  EXPECT_LT(mixture->time_us * 1.01, c.time_us);
}

// The demands of the issue are on known fabrics; this keeps the planner good on unknown ones.
TEST(Planner, NearTheBoundOnMostRandomFabrics) {
  std::mt19937 random(99);
  int near = 0;
  const int all = cases(1000);
  for (int i = 0; i < all; ++i) {
    Fabric f = even_fabric(2 + static_cast<int>(random() % 23), 1);
    f.racks.clear();
    for (unsigned r = 0; r <= random() % 5; ++r) {
      const std::int64_t up = static_cast<std::int64_t>(random() % 9) * 200'000;
      f.racks.push_back({"r" + std::to_string(r), up, up});
    }
    for (NodeLink& n : f.nodes) {
      n.out_kbps = n.in_kbps = 100'000 * (1 + static_cast<std::int64_t>(random() % 4));
      n.rack = static_cast<int>(random() % f.racks.size());
    }
    const double x = x_bound(best(f));
    EXPECT_LE(x, 1.35) << best(f).reason;
    near += x <= kNear;
  }
  EXPECT_GE(near, all * 97 / 100);
}

// One fast node of each rack adds up for all others: many stages, and a job has few calls under
// way.
TEST(Planner, ChunksAreSmallWhereStagesAreMany) {
  Fabric f = racks(2, 4, 400, 116, false);
  for (std::size_t n = 0; n < f.nodes.size(); ++n) {
    if (n % 4 != 0) f.nodes[n].out_kbps = f.nodes[n].in_kbps = f.nodes[n].out_kbps / 4;
  }
  for (const int latency_us : {50, 250, 550}) {
    f.latency_us = latency_us;
    const auto choice = plan(f, 32 << 20, {});
    ASSERT_TRUE(choice.is_ok());
    EXPECT_GE(choice->plans.lanes[0].levels.size(), 2U);
    EXPECT_LE(choice->plans.chunk_bytes, 64U << 10) << latency_us;
  }
  const auto even = plan(even_fabric(8, 400'000), 32 << 20, {});
  ASSERT_TRUE(even.is_ok());
  EXPECT_GE(even->plans.chunk_bytes, 256U << 10);
}

TEST(Planner, GridsKeepTheFirstLevelsInsideTheRacks) {
  PlanOptions options;
  options.only = "grid";
  const Fabric f = racks(3, 2, 400, 200, true);
  const auto choice = plan(f, k64MiB, options);
  ASSERT_TRUE(choice.is_ok());
  for (const GroupPlan& lane : choice->plans.lanes) {
    for (const Group& g : lane.levels[0].groups) {
      for (int m : g.members) EXPECT_EQ(f.nodes[m].rack, f.nodes[g.members[0]].rack);
    }
  }
}

TEST(Predict, ByHand) {
  Fabric f = even_fabric(2, 8'000);  // one byte per microsecond
  f.latency_us = 100;
  const auto cost = [&](std::vector<Share> cuts, std::uint64_t bytes) {
    return predict(f, {{{2, {{{{Pattern::kDirect, {0, 1}, std::move(cuts)}}}}}}, "x"}, bytes);
  };
  // Both send half, then the other half, each time with a header; two steps.
  const Candidate half = cost({0, kShareUnits / 2, kShareUnits}, 1'000'000);
  EXPECT_NEAR(half.time_us, 1'000'000 + 2 * 64 + 2 * 100, 1);
  EXPECT_EQ(half.name, "x");
  EXPECT_EQ(half.limit, "sending of node node0");
  // Node 1 sends everything first, and only then gets it back: about a frame of 128 KiB does not
  // overlap with anything.
  const Candidate tree = cost({0, kShareUnits, kShareUnits}, 1'000'000);
  EXPECT_NEAR(tree.time_us, 1'000'000 + 64 + (128 << 10) + 2 * 100, 30);
  EXPECT_EQ(cost({0, kShareUnits, kShareUnits}, 8).limit, "latency");
}

TEST(Planner, SmallMessagesTakeFewSteps) {
  const PlanChoice c = best(even_fabric(8, 10'000'000), 1024);
  EXPECT_LE(c.plans.lanes[0].levels.size(), 3u);
  for (const Candidate& other : c.candidates) {
    EXPECT_NE(c.plans.name, "ring");
    EXPECT_LE(c.time_us, other.time_us * 1.001);
  }
}

// A ring is best for large sums there, and slow for small ones.
TEST(Planner, SmallSumsGetAPlanOfTheirOwn) {
  const Fabric f = racks(3, 4, 300, 300, true);
  const PlanChoice c = best(f, 32 << 20);
  EXPECT_EQ(c.plans.name, "ring");
  ASSERT_FALSE(c.plans.small.is_empty());
  EXPECT_EQ(c.plans.small.bytes, kMostSmallBytes);
  const PlanSet small{c.plans.small.lanes, c.plans.small.name};
  EXPECT_GE(predict(f, c.plans, kSmallPlannedBytes).time_us,
            kSmallGain * predict(f, small, kSmallPlannedBytes).time_us);
  EXPECT_NE(c.reason.find("sums of up to 64 KiB go by " + c.plans.small.name), std::string::npos)
      << c.reason;
  for (const GroupPlan& lane : c.plans.small.lanes) EXPECT_EQ(run_on_integers(lane, 1000, 1), "");
  EXPECT_TRUE(best(f, kMostSmallBytes).plans.small.is_empty());
  PlanOptions forced;
  forced.only = "ring";
  EXPECT_TRUE(plan(f, 32 << 20, forced)->plans.small.is_empty());
}

// Two calls of 128 KiB at 400 Mbit/s, all that NCCL posts on fast links or long ways, or where
// rates are not known.
TEST(Planner, OnlyWhatKeepsTheNetworkBusyIsInTheWorks) {
  const auto window = [](const Fabric& f, const PlanOptions& options = {}) {
    return plan(f, 32 << 20, options)->plans.busy_bytes;
  };
  EXPECT_GE(window(even_fabric(8, 400'000)), 128U << 10);
  EXPECT_LT(window(even_fabric(8, 400'000)), 384U << 10);  // two are always in the works
  EXPECT_GE(window(even_fabric(8, 4'000'000)), 512U << 10);
  EXPECT_EQ(window(even_fabric(8, 100'000'000)), 0);
  Fabric far = even_fabric(8, 400'000);
  far.latency_us = 20'000;
  EXPECT_EQ(window(far), 0);
  PlanOptions nominal;
  nominal.has_nominal_rates = true;
  EXPECT_EQ(window(even_fabric(8, 400'000), nominal), 0);
}

TEST(Planner, ChunksOfTwoLevelsAreInTheWorksForLess) {
  const Fabric f = racks(2, 4, 400, 200, true);
  const PlanSet plans = best(f, 32 << 20).plans;
  EXPECT_EQ(plans.windowed_chunks(), 2);
  const FabricView view(f);
  const std::uint32_t whole =
      busy_bytes(view, cost_of(view, plans), plans.chunk_bytes, 1, kMessageNs);
  EXPECT_LT(plans.busy_bytes, whole);
  EXPECT_GT(plans.busy_bytes, whole / 2);
}

// On a machine that nodes share, messages cost more than steps.
TEST(Planner, CrowdedNodesSendFewMessages) {
  const Fabric f = even_fabric(8, 400'000);
  EXPECT_TRUE(best(f, 32 << 20).plans.small.is_empty());
  PlanOptions crowded;
  crowded.small_message_ns = 8 * kSmallMessageNs;
  const auto c = plan(f, 32 << 20, crowded);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->plans.name, "direct");
  EXPECT_EQ(c->plans.small.name, "grid 2x2x2");
}

// A demand comes first, and a replanning interval changes nothing.
TEST(Planner, NodesThatShareProcessorsGetTwoTrees) {
  PlanOptions shared;
  shared.share_processors = true;
  for (const int nodes : {4, 8, 16}) {
    const Fabric f = even_fabric(nodes, 400'000);
    const auto c = plan(f, 32 << 20, shared);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->plans.name, "double-tree");
    EXPECT_NE(c->reason.find("shared processors"), std::string::npos) << c->reason;
    Fabric uneven = f;
    uneven.nodes[1].out_kbps /= 2;
    EXPECT_DOUBLE_EQ(weigh(uneven, c->plans, 32 << 20, shared)->gain(), 1);
  }
  shared.only = "ring";
  EXPECT_EQ(plan(even_fabric(8, 400'000), 32 << 20, shared)->plans.name, "ring");
}

TEST(Planner, OneAndTwoNodes) {
  EXPECT_EQ(best(even_fabric(1, 1000)).plans.lanes[0].levels.size(), 0u);
  const PlanChoice c = best(nodes({400, 100}));
  EXPECT_NEAR(c.bound_us, kUs / 100, 1);
  EXPECT_LE(x_bound(c), kNear) << c.reason;
}

TEST(Planner, ForcesAFamilyByName) {
  for (const Family& family : families()) {
    PlanOptions options;
    options.only = family.name;
    const auto choice = plan(racks(2, 4, 400, 200, true), k64MiB, options);
    ASSERT_TRUE(choice.is_ok()) << choice.status().message();
    EXPECT_EQ(choice->plans.name.substr(0, 4), std::string(family.name).substr(0, 4));
  }
  PlanOptions options;
  options.only = "torus";
  const auto unknown = plan(even_fabric(4, 1000), 1, options);
  ASSERT_FALSE(unknown.is_ok());
  for (const Family& family : families()) {
    EXPECT_NE(unknown.status().message().find(family.name), std::string::npos);
  }
  options.only = "racks";
  EXPECT_FALSE(plan(even_fabric(4, 1000), 1, options).is_ok());
  options.only_if_it_applies = true;
  const auto best = plan(even_fabric(4, 1000), 1, options);
  ASSERT_TRUE(best.is_ok()) << best.status().message();
  EXPECT_EQ(best->plans, plan(even_fabric(4, 1000), 1, {})->plans);
}

TEST(Planner, RefusesBadOptionsAndFabrics) {
  PlanOptions options;
  options.max_lanes = 0;
  EXPECT_FALSE(plan(even_fabric(4, 1000), 1, options).is_ok());
  Fabric f = even_fabric(4, 1000);
  f.nodes[2].rack = 1;
  EXPECT_FALSE(plan(f, 1, {}).is_ok());
}

Fabric random_fabric(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  Fabric f = even_fabric(pick(2, 20), 1);
  f.racks.clear();
  const int count = pick(1, 5);
  for (int r = 0; r < count; ++r) {
    f.racks.push_back({"r" + std::to_string(r), pick(0, 3) * 150'000LL, pick(0, 3) * 170'000LL});
  }
  const bool symmetric = pick(0, 1) == 0;
  for (NodeLink& n : f.nodes) {
    n.out_kbps = n.in_kbps = 100'000 * pick(1, 10);
    if (!symmetric) n.in_kbps = 100'000 * pick(1, 10);
    n.rack = pick(0, count - 1);
  }
  f.latency_us = pick(0, 300);
  if (pick(0, 3) == 0) f.rack_latency_us = f.latency_us / 10;
  return f;
}

// Four sites of two nodes: the steps within a site take no time to speak of.
TEST(Predict, StepsWithinARackHaveItsLatency) {
  Fabric f = even_fabric(8, 10'000'000);
  f.racks.clear();
  for (int r = 0; r < 4; ++r) f.racks.push_back({"site" + std::to_string(r), 0, 0});
  for (int n = 0; n < 8; ++n) f.nodes[n].rack = n / 2;
  f.latency_us = 5000;
  const PlanChoice far = *plan(f, 4096, {.only = "racks"});
  f.rack_latency_us = 5;
  const PlanChoice near = *plan(f, 4096, {.only = "racks"});
  // Two of four steps stay in a site.
  EXPECT_NEAR(far.time_us - near.time_us, 2 * (5000 - 5), 1);
}

// The heart: on any fabric every candidate computes the sum on every lane, and none is predicted to
// beat the bound.
TEST(Planner, RandomFabrics) {
  std::mt19937 random(20240607);
  for (int i = 0; i < 300; ++i) {
    const Fabric f = random_fabric(random);
    const std::uint64_t bytes = std::uint64_t{1} << (random() % 28);
    const FabricView view(f);
    const double bound = bound_us(f, bytes);
    for (const Family& family : families()) {
      for (const Blueprint& blueprint : family.propose(view)) {
        PlanSet set{{}, blueprint.name};
        for (int lane = 0; lane < 3; ++lane) {
          set.lanes.push_back(blueprint.build(lane_order(view, lane, i)));
          ASSERT_EQ(run_on_integers(set.lanes.back(), 97, 1), "") << i << " " << blueprint.name;
        }
        ASSERT_TRUE(validate(set).is_ok()) << i << " " << validate(set).message();
        EXPECT_GE(predict(f, set, bytes).time_us, bound * (1 - 1e-6)) << i << " " << blueprint.name;
      }
    }
    const auto choice = plan(f, bytes, {});
    ASSERT_TRUE(choice.is_ok()) << i << " " << choice.status().message();
    EXPECT_DOUBLE_EQ(choice->bound_us, bound);
  }
}

TEST(Planner, SameInSameOut) {
  std::mt19937 random(5);
  const Fabric f = random_fabric(random);
  const auto a = plan(f, k64MiB, {});
  const auto b = plan(f, k64MiB, {});
  EXPECT_EQ(digest(a->plans), digest(b->plans));
  EXPECT_EQ(a->reason, b->reason);
}

TEST(Planner, LanesDifferAndAreBalanced) {
  const Fabric f = racks(2, 4, 400, 200, true);
  PlanOptions options;
  options.only = "tree";
  const auto c = plan(f, k64MiB, options);
  ASSERT_TRUE(c.is_ok());
  ASSERT_EQ(c->plans.lanes.size(), 8u);
  EXPECT_NE(c->plans.lanes[0], c->plans.lanes[1]);
  // Every node takes its turn at the front of the order, where trees have their root.
  const FabricView view(f);
  std::vector<int> front(f.size(), 0);
  for (int lane = 0; lane < f.size(); ++lane) ++front[lane_order(view, lane, 1).flat()[0]];
  EXPECT_EQ(front, std::vector<int>(f.size(), 1));
}

}  // namespace
}  // namespace riffle::planner_test
