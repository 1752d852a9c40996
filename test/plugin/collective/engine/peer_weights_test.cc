#include "plugin/collective/engine/peer_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "plugin/transport/base/mesh.h"

namespace riffle::peer_weights_test {
namespace {

Group direct(std::vector<int> members, std::vector<Share> cuts) {
  return {Pattern::kDirect, std::move(members), std::move(cuts)};
}

PlanSet one_level(std::vector<Share> cuts) {
  std::vector<int> members(cuts.size() - 1);
  std::iota(members.begin(), members.end(), 0);
  const int nodes = static_cast<int>(members.size());
  PlanSet plans;
  plans.lanes = {{nodes, {{{direct(std::move(members), std::move(cuts))}}}}};
  return plans;
}

// What a peer weighs that gets this part of the buffer's size.
int weight(double part) {
  return static_cast<int>(std::lround(kMostWeight * std::pow(part, kEvenness)));
}

GroupPlan racks_of_2_and_3() {
  const Share sixth = kShareUnits / 6;
  GroupPlan racks;
  racks.nodes = 5;
  racks.levels.resize(2);
  racks.levels[0].groups = {direct({0, 1}, {0, 3 * sixth, kShareUnits}),
                            direct({2, 3, 4}, {0, 2 * sixth, 4 * sixth, kShareUnits})};
  racks.levels[1].groups = {direct({0, 2}, {0, sixth, 2 * sixth}),
                            direct({0, 3}, {2 * sixth, 2 * sixth, 3 * sixth}),
                            direct({1, 3}, {3 * sixth, 3 * sixth, 4 * sixth}),
                            direct({1, 4}, {4 * sixth, 5 * sixth, kShareUnits})};
  return racks;
}

// Inside the rack of two halves, in that of three thirds; across, sixths.
TEST(PeerWeights, GoWithWhatGoesThere) {
  PlanSet plans;
  plans.lanes = {racks_of_2_and_3()};
  const std::vector<int> of_0 = peer_weights(plans, 0);
  EXPECT_EQ(of_0, (std::vector{1, 16, weight(1.0 / 3), weight(1.0 / 6), 1}));
  EXPECT_EQ(weight(1.0 / 6), 4);
  for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 4}}) {
    EXPECT_EQ(peer_weights(plans, a)[b], peer_weights(plans, b)[a]) << "as much comes back";
  }
}

TEST(PeerWeights, AreThoseOfTheMeanOverLanes) {
  GroupPlan ring;
  ring.nodes = 5;
  ring.levels = {{{{Pattern::kRing, {0, 1, 2, 3, 4}, {0, 0, 0, 0, 0, kShareUnits}}}}};
  PlanSet plans;
  plans.lanes = {ring, ring, ring,
                 racks_of_2_and_3()};  // the ring: everything twice, but for what node 4 owns
  EXPECT_EQ(peer_weights(plans, 0),
            (std::vector{1, 16, weight(1.0 / 12), weight(1.0 / 24), weight(0.75)}));
}

TEST(PeerWeights, NoneOnOneLevel) {
  EXPECT_TRUE(peer_weights(one_level({0, kShareUnits / 4, kShareUnits}), 0).empty());
}

TEST(PeerWeights, NoneWhereGroupsAreAlike) {
  const Share half = kShareUnits / 2;
  GroupPlan grid;
  grid.nodes = 4;
  grid.levels.resize(2);
  const auto across = [&](Share cut) {
    grid.levels[0].groups = {direct({0, 1}, {0, cut, kShareUnits}),
                             direct({2, 3}, {0, cut, kShareUnits})};
    grid.levels[1].groups = {direct({0, 2}, {0, cut / 2, cut}),
                             direct({1, 3}, {cut, (cut + kShareUnits) / 2, kShareUnits})};
    PlanSet plans;
    plans.lanes = {grid};
    return peer_weights(plans, 0);
  };
  EXPECT_TRUE(across(half).empty());
  EXPECT_TRUE(across(half + half / 25).empty());
  EXPECT_FALSE(across(half + half / 10).empty());
}

TEST(PeerWeights, NoneWithRelaxedGroups) {
  PlanSet plans;
  plans.lanes = {racks_of_2_and_3()};
  EXPECT_FALSE(peer_weights(plans, 0).empty());
  plans.relaxed.steps = plans.relaxed.lanes = 1;
  EXPECT_TRUE(peer_weights(plans, 0).empty());
}

}  // namespace
}  // namespace riffle::peer_weights_test
