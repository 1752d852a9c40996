// topology/plan/schedules/contraction.h against closed forms, published values and plain
// simulation.
#include "topology/plan/schedules/contraction.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "topology/plan/schedules/families.h"

namespace riffle::contraction_test {
namespace {

Fabric racks(int count, int size, std::int64_t uplink_kbps = 0) {
  Fabric f = even_fabric(count * size, 400'000);
  f.racks.clear();
  for (int r = 0; r < count; ++r) {
    f.racks.push_back({"r" + std::to_string(r), uplink_kbps, uplink_kbps});
  }
  for (int n = 0; n < f.size(); ++n) f.nodes[static_cast<std::size_t>(n)].rack = n % count;
  return f;
}

ScheduleTable table(const Fabric& fabric, const Cycle& cycle) {
  return table_of(FabricView(fabric), cycle);
}

ScheduleTable named(const Fabric& fabric, const std::string& name) {
  const FabricView view(fabric);
  for (const auto& family : {propose_grids(view, {}), propose_reference(view, {})}) {
    for (const Cycle& cycle : family) {
      if (cycle.name == name) return table_of(view, cycle);
    }
  }
  ADD_FAILURE() << "no pattern " << name;
  return {};
}

// The y-state with Gaussian gradients, written down once more and straight: the mean over nodes and
// steps of (y_i - mean)^2.
double simulated_deviation(const ScheduleTable& t, std::size_t lane, std::uint64_t steps) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> gradient;
  std::vector<double> y(static_cast<std::size_t>(t.nodes), 0.0);
  double sum = 0;
  std::uint64_t counted = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (double& v : y) v += gradient(random);
    for (const Group& g : t.at(step, lane).levels[0].groups) {
      double mean = 0;
      for (int m : g.members) mean += y[static_cast<std::size_t>(m)];
      for (int m : g.members) {
        y[static_cast<std::size_t>(m)] = mean / static_cast<double>(g.members.size());
      }
    }
    if (step < steps / 10) continue;
    const double mean = std::accumulate(y.begin(), y.end(), 0.0) / t.nodes;
    for (double v : y) sum += (v - mean) * (v - mean);
    counted += y.size();
  }
  return sum / static_cast<double>(counted);
}

TEST(Contraction, RejectsTheTwoByTwoTrap) {
  // With two workers per rack the rack's "group" is a single one: {0,2} and {1,3} never meet.
  const ScheduleTable trap = named(racks(2, 2), "pattern B");
  ASSERT_TRUE(validate(trap));
  const Status s = verify_contraction(trap);
  ASSERT_FALSE(s);
  EXPECT_NE(s.message().find("never join all 4 nodes"), std::string::npos) << s.message();
  EXPECT_FALSE(mixing_of(trap).connected);
  EXPECT_TRUE(verify_contraction(named(racks(2, 2), "pattern C")));
}

TEST(Contraction, LooksAtEveryLaneByItself) {
  // Together the lanes join all nodes; but an element only ever sees one of them.
  const Fabric f = even_fabric(4, 1000);
  ScheduleTable t = table(f, {"two lanes", {{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}}, 2, {}});
  EXPECT_TRUE(verify_contraction(t));
  t.table = {0, 1, 0, 1};
  const Status s = verify_contraction(t);
  ASSERT_FALSE(s);
  EXPECT_NE(s.message().find("lane 0"), std::string::npos) << s.message();
  t.table = {0, 1, 1, 1};
  const Status second = verify_contraction(t);
  ASSERT_FALSE(second);
  EXPECT_NE(second.message().find("lane 1"), std::string::npos) << second.message();
}

TEST(Contraction, ThatIsTooSlowIsRefused) {
  // A chain of pairs joins all nodes, but one period of it leaves nearly all of the difference
  // between its ends.
  constexpr int kNodes = 200;
  Cycle chain{"chain", {{}, {}}, 1, {}};
  for (int n = 0; n + 1 < kNodes; n += 2) chain.steps[0].push_back({n, n + 1});
  for (int n = 1; n + 1 < kNodes; n += 2) chain.steps[1].push_back({n, n + 1});
  const ScheduleTable t = table(even_fabric(kNodes, 1000), chain);
  EXPECT_TRUE(mixing_of(t).connected);
  EXPECT_FALSE(verify_contraction(t));
}

TEST(Contraction, FullGridsAreExactEveryPeriod) {
  for (const auto& shape : std::vector<std::vector<int>>{
           {4, 4}, {2, 2, 2, 2}, {3, 3, 3}, {32, 32}, {5, 3}, {7, 2}, {4, 3, 2}, {16, 8, 8}}) {
    const int nodes = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
    std::string name = "grid";
    for (int side : shape) name += (name == "grid" ? " " : " x ") + std::to_string(side);
    const ScheduleTable t = named(even_fabric(nodes, 1000), name);
    ASSERT_EQ(t.nodes, nodes);
    const Mixing m = mixing_of(t);
    EXPECT_TRUE(verify_contraction(t)) << name;
    EXPECT_LT(m.norm, 1e-20) << name;
    EXPECT_LT(m.contraction, 1e-20) << name;
    EXPECT_NEAR(m.deviation, grid_deviation(shape), grid_deviation(shape) * (m.exact ? 1e-6 : 0.02))
        << name;
  }
  EXPECT_DOUBLE_EQ(grid_deviation({4, 4}), 0.1875);
  EXPECT_DOUBLE_EQ(grid_deviation({2, 2, 2, 2}), 0.6875);
}

// "racks x workers": variance contraction per step and stationary deviation of the reference's
// patterns, as its authors measured them.
TEST(Contraction, AgreesWithTheReference) {
  struct Row {
    int racks, workers;
    const char* name;
    double contraction, deviation;
  };
  for (const Row& row :
       {Row{4, 4, "pattern A", 0, 0.187}, Row{4, 4, "pattern B", 0.444, 0.407},
        Row{4, 4, "pattern C", 0.750, 0.775}, Row{2, 8, "pattern A", 0, 0.250},
        Row{2, 8, "pattern B", 0.735, 0.296}, Row{2, 8, "pattern C", 0.875, 0.527},
        Row{4, 8, "pattern A", 0, 0.156}, Row{4, 8, "pattern B", 0.735, 0.384},
        Row{4, 8, "pattern C", 0.875, 0.765}, Row{2, 2, "pattern C", 0.5, 0.622}}) {
    const Mixing m = mixing_of(named(racks(row.racks, row.workers), row.name));
    EXPECT_NEAR(m.contraction, row.contraction, 0.002) << row.name << row.racks << row.workers;
    EXPECT_NEAR(m.deviation, row.deviation, 0.02 * row.deviation)
        << row.name << row.racks << row.workers;
  }
}

TEST(Contraction, DeviationIsWhatASimulationShows) {
  const Fabric f = racks(2, 4, 200'000);
  for (const Ration& ration : {Ration{Crossing::kHalf, 4, 1}, Ration{Crossing::kGuests, 6, 1},
                               Ration{Crossing::kAll, 3, 1}}) {
    const ScheduleTable t = table(f, rationed_pairs(FabricView(f), ration, {}));
    const Mixing m = mixing_of(t);
    ASSERT_TRUE(m.exact);
    for (const std::size_t lane : {0u, 1u}) {
      EXPECT_NEAR(simulated_deviation(t, lane, 60'000) / m.deviation, 1, 0.05) << t.name;
    }
  }
  EXPECT_NEAR(simulated_deviation(named(even_fabric(16, 1000), "grid 4 x 4"), 0, 40'000), 0.1875,
              0.05 * 0.1875);
}

// Nodes that are slow by three and by four, met each in turns of its own: with every seventh step
// across racks that would be a turn of 84.
TEST(Contraction, TurnsOfMoreLanesThanAcceptedAreNotProposed) {
  Fabric f = racks(2, 4, 200'000);
  const std::int64_t rate = f.nodes[0].out_kbps;
  const auto last = f.nodes.size() - 1;
  f.nodes[last].out_kbps = f.nodes[last].in_kbps = rate / 4;
  f.nodes[last - 2].out_kbps = f.nodes[last - 2].in_kbps = rate / 3;
  const FabricView view(f);
  const FamilyOptions options;
  EXPECT_TRUE(rationed_pairs(view, {Crossing::kHalf, 7, 4}, options).steps.empty());
  for (const Ration& ration : rations(view, options)) {
    EXPECT_LE(rationed_pairs(view, ration, options).lanes, options.max_lanes);
  }
}

TEST(Contraction, SampledDeviationAgreesWithTheCovariance) {
  // 64 nodes are computed, 66 sampled; pairs at random deviate alike.
  const auto deviation = [](int nodes) {
    const Fabric f = even_fabric(nodes, 1000);
    const Mixing m = mixing_of(table(f, rationed_pairs(FabricView(f), {}, {})));
    EXPECT_EQ(m.exact, nodes <= kExactNodes);
    return m.deviation;
  };
  EXPECT_NEAR(deviation(62), random_groups_deviation(62, 31), 0.05);
  EXPECT_NEAR(deviation(66), random_groups_deviation(66, 33), 0.05);
}

TEST(Contraction, RandomGroupsFollowTheirFormula) {
  std::mt19937_64 random(3);
  Cycle cycle{"random", {}, 1, {}};
  std::vector<int> order(16);
  std::iota(order.begin(), order.end(), 0);
  for (int step = 0; step < 250; ++step) {
    std::shuffle(order.begin(), order.end(), random);
    NodeGroups groups;
    for (std::ptrdiff_t g = 0; g < 4; ++g) {
      groups.emplace_back(order.begin() + 4 * g, order.begin() + 4 * (g + 1));
    }
    cycle.steps.push_back(std::move(groups));
  }
  const Mixing m = mixing_of(table(even_fabric(16, 1000), cycle));
  EXPECT_NEAR(random_groups_deviation(16, 4), 0.2344, 1e-4);
  EXPECT_NEAR(m.deviation / random_groups_deviation(16, 4), 1, 0.05);
}

TEST(Contraction, DeltaRoundsFollowTheirFormula) {
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  const ScheduleTable t = table(even_fabric(16, 1000), {"all nodes", {{all}}, 1, {16}});
  for (const double delta : {0.25, 0.5, 1.0, 1.5, 1.9}) {
    const Mixing m = mixing_of(t, {delta, 16, false});
    EXPECT_NEAR(m.deviation / delta_deviation(16, delta, 16), 1, 1e-3) << delta;
  }
  EXPECT_NEAR(delta_deviation(16, 0.5, 16), 20.0, 0.01);
  EXPECT_NEAR(fir_deviation(16, 4), 3.75, 1e-9);
  EXPECT_NEAR(delta_limit(0), 2, 1e-9);
  EXPECT_NEAR(delta_limit(1), 1, 1e-9);
  EXPECT_NEAR(delta_limit(2), 0.618, 1e-3);
  EXPECT_NEAR(delta_limit(4), 0.347, 1e-3);
}

}  // namespace
}  // namespace riffle::contraction_test
