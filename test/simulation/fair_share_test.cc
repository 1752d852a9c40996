#include "plugin/transport/sim/fair_share.h"

#include <gtest/gtest.h>

#include <random>

namespace riffle::sim::fair_share_test {
namespace {

TEST(FairShareTest, OneFlowTakesTheTightestOfItsResources) {
  FairShare share;
  const std::vector<int> path = {share.add_resource(10), share.add_resource(4),
                                 share.add_resource(7)};
  const int flow = share.add_flow(path);
  share.start(flow);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(flow), 4);
  share.set_capacity(path[1], 20);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(flow), 7);
}

// The textbook example: what a bottlenecked flow leaves goes to the others.
TEST(FairShareTest, WhatOneCannotUseTheOthersGet) {
  FairShare share;
  const int a = share.add_resource(10), b = share.add_resource(2);
  const std::vector<int> both = {a, b}, only_a = {a};
  const int narrow = share.add_flow(both), second = share.add_flow(both);
  const int wide = share.add_flow(only_a);
  for (const int f : {narrow, second, wide}) share.start(f);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(narrow), 1);
  EXPECT_DOUBLE_EQ(share.rate(second), 1);
  EXPECT_DOUBLE_EQ(share.rate(wide), 8);
  share.stop(second);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(narrow), 2);
  EXPECT_DOUBLE_EQ(share.rate(wide), 8);
}

TEST(FairShareTest, WeightsCountAsSoManyFlows) {
  FairShare share;
  const int a = share.add_resource(12), b = share.add_resource(2);
  const std::vector<int> only_a = {a}, both = {a, b};
  const int thick = share.add_flow(only_a), thin = share.add_flow(only_a),
            held = share.add_flow(both);
  share.set_weight(thick, 4);
  for (const int f : {thick, thin, held}) share.start(f);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(thick), 8);
  EXPECT_DOUBLE_EQ(share.rate(thin), 2);
  EXPECT_DOUBLE_EQ(share.rate(held), 2);
  share.set_weight(held, 7);  // gets no more through b; active ones, too, may be weighed anew
  share.set_weight(thick, 1);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(thick), 5);
  EXPECT_DOUBLE_EQ(share.rate(thin), 5);
  EXPECT_DOUBLE_EQ(share.rate(held), 2);
  share.stop(held);
  share.set_weight(held, 1);
  share.set_weight(thin, 2);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(thin), 8);
}

// Max-min fair means: every flow has a full resource on which nobody has more.
TEST(FairShareTest, EveryFlowHasABottleneckInRandomCases) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    FairShare share;
    const int resources = 2 + static_cast<int>(random() % 10);
    const int flows = 1 + static_cast<int>(random() % 40);
    for (int r = 0; r < resources; ++r) share.add_resource(1 + static_cast<double>(random() % 100));
    std::vector<std::vector<int>> paths;
    for (int f = 0; f < flows; ++f) {
      std::vector<int> path;
      for (int r = 0; r < resources && path.size() < 4; ++r) {
        if (random() % 3 == 0) path.push_back(r);
      }
      if (path.empty()) path.push_back(0);
      paths.push_back(path);
      share.add_flow(path);
    }
    for (int f = 0; f < flows; ++f) share.start(f);
    for (int f = 0; f < flows; ++f) {
      if (random() % 3 == 0) share.stop(f);
    }
    share.solve();
    std::vector<double> load(resources, 0), most(resources, 0);
    for (const int f : share.active()) {
      EXPECT_GT(share.rate(f), 0);
      for (const int r : paths[f]) {
        load[r] += share.rate(f);
        most[r] = std::max(most[r], share.rate(f));
      }
    }
    for (int r = 0; r < resources; ++r) EXPECT_LE(load[r], share.capacity(r) * (1 + 1e-9));
    for (const int f : share.active()) {
      bool has_bottleneck = false;
      for (const int r : paths[f]) {
        has_bottleneck |=
            load[r] >= share.capacity(r) * (1 - 1e-9) && share.rate(f) >= most[r] * (1 - 1e-9);
      }
      EXPECT_TRUE(has_bottleneck) << "flow " << f << " of round " << round;
    }
  }
}

}  // namespace
}  // namespace riffle::sim::fair_share_test
