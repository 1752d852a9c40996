// Hints of racks: what they suggest, what they weigh, and that rounds overrule them.
#include "topology/probe/rack_hints.h"

#include <gtest/gtest.h>

#include "test/topology/probe_network.h"

namespace riffle::rack_hints_test {
namespace {

using probe::contradicting;
using probe::hint_of_hops;
using probe::hint_of_texts;
using probe::prior;
using probe::RackHint;

TEST(RackHints, NodesOfTheSameTextStandInOneRack) {
  const auto hint = hint_of_texts("labels", 8, {"b", "a", "b", "c", "a"});
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->source, "labels");
  EXPECT_EQ(hint->rack_of, (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_FALSE(hint_of_texts("labels", 8, {"a", "a", "a"})) << "one rack";
  EXPECT_FALSE(hint_of_texts("labels", 8, {"a", "b", "c"})) << "one of each, as hosts' own subnets";
  EXPECT_FALSE(hint_of_texts("labels", 8, {"a", "", "a", "b"})) << "one is not told";
}

// Every ordered pair once, with the hops that `hops` tells.
template <class Hops>
std::vector<probe::Observed> rounds_with(int nodes, Hops hops) {
  std::mt19937_64 random(1);
  std::vector<probe::Observed> all;
  for (const probe::Round& round : probe::all_pairs(nodes, random)) {
    all.push_back({round, {}});
    for (const auto& f : round.flows) {
      all.back().samples.push_back({.hops = hops(std::min(f.from, f.to), std::max(f.from, f.to))});
    }
  }
  return all;
}

TEST(RackHints, FewerHopsWithinARackThanBetween) {
  const auto leaves = [](int a, int b) { return a % 3 == b % 3 ? 1 : a % 2 == b % 2 ? 3 : 5; };
  const auto hint = hint_of_hops(9, rounds_with(9, leaves));
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->rack_of, (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
  const auto half_known = [&](int a, int b) { return (a + b) % 5 == 0 ? -1 : leaves(a, b); };
  ASSERT_TRUE(hint_of_hops(9, rounds_with(9, half_known)));
  EXPECT_EQ(hint_of_hops(9, rounds_with(9, half_known))->rack_of, hint->rack_of);
}

TEST(RackHints, HopsThatMakeNoRacks) {
  EXPECT_FALSE(hint_of_hops(6, rounds_with(6, [](int, int) { return -1; }))) << "unknown";
  EXPECT_FALSE(hint_of_hops(6, rounds_with(6, [](int, int) { return 0; }))) << "one switch";
  EXPECT_FALSE(hint_of_hops(6, rounds_with(6, [](int a, int b) { return b - a; }))) << "a chain";
}

TEST(RackHints, NodesCountByHowFarRacksAgree) {
  const RackHint hint{"", 8, {0, 0, 0, 1, 1, 1}};
  EXPECT_DOUBLE_EQ(prior({hint}, {1, 1, 1, 0, 0, 0}), 48) << "whatever racks are called";
  EXPECT_DOUBLE_EQ(prior({hint}, {0, 0, 0, 0, 0, 0}), 24);
  EXPECT_DOUBLE_EQ(prior({hint}, {0, 0, 1, 1, 1, 1}), 8 * (2 * 2.0 / 3 + 1.0 / 6 + 3 * 3.0 / 4));
  EXPECT_DOUBLE_EQ(prior({hint, hint}, {0, 0, 0, 1, 1, 1}), 96);
  EXPECT_DOUBLE_EQ(prior({}, {0, 1}), 0);
}

TEST(RackHints, ContradictingAreNodesAwayFromMostOfTheirRack) {
  const RackHint hint{"", 8, {0, 0, 0, 1, 1, 1}};
  EXPECT_EQ(contradicting(hint, {0, 0, 0, 1, 1, 1}), std::vector<int>{});
  EXPECT_EQ(contradicting(hint, {0, 0, 0, 0, 0, 0}), std::vector<int>{}) << "one for both";
  EXPECT_EQ(contradicting(hint, {0, 0, 1, 0, 1, 1}), (std::vector<int>{2, 3}));
  EXPECT_EQ(contradicting(hint, {0, 0, 2, 1, 1, 1}), (std::vector<int>{2}));
}

constexpr int kNodes = 12;
constexpr std::int64_t kRate = 400'000;

// Ranks in turn in two racks; the uplinks hold back a rack that sends as a whole, and hardly ever
// pairs at random.
Fabric mild_uplinks() {
  Fabric f = even_fabric(kNodes, kRate);
  f.racks.assign(2, {"", kNodes * kRate * 7 / 20, kNodes * kRate * 7 / 20});
  for (int n = 0; n < kNodes; ++n) f.nodes[n].rack = n % 2;
  return f;
}

probe::Findings survey_with(Fabric fabric, const std::vector<RackHint>& hints, std::uint64_t seed) {
  ProbeNetwork network(std::move(fabric), {}, seed);
  probe::Survey survey(kNodes, 1, {{}, hints});
  while (const auto round = survey.next()) survey.add(network.run(*round));
  return survey.findings();
}

std::vector<RackHint> label(int (*rack_of)(int)) {
  RackHint hint{"labels", probe::kLabelNats, {}};
  for (int n = 0; n < kNodes; ++n) hint.rack_of.push_back(rack_of(n));
  return {hint};
}

TEST(RackHints, ARightOneFindsRacksThatRoundsAloneDoNot) {
  const auto right = label([](int n) { return n % 2; });
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(survey_with(mild_uplinks(), {}, seed).racks.count, 1) << seed;
    const probe::Findings found = survey_with(mild_uplinks(), right, seed);
    ASSERT_EQ(found.racks.rack_of, right[0].rack_of) << seed;
    EXPECT_TRUE(found.racks.overruled.empty());
    for (const probe::Uplink& u : found.racks.uplinks) {
      EXPECT_NEAR(u.up_kbps, kNodes * kRate * 7 / 20.0, 0.1 * kNodes * kRate * 7 / 20.0);
    }
  }
}

TEST(RackHints, AWrongOneSplitsNoNetworkWithoutRacks) {
  const auto halves = label([](int n) { return n / (kNodes / 2); });
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const probe::Findings found = survey_with(even_fabric(kNodes, kRate), halves, seed);
    EXPECT_EQ(found.racks.count, 1) << seed;
    EXPECT_TRUE(found.racks.overruled.empty());
  }
}

TEST(RackHints, AWrongOneIsOverruledAndNamed) {
  const auto halves = label([](int n) { return n / (kNodes / 2); });
  Fabric fabric = mild_uplinks();
  for (RackLink& r : fabric.racks) r.up_kbps = r.down_kbps = kRate;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const probe::Racks found = survey_with(fabric, halves, seed).racks;
    for (int n = 0; n < kNodes; ++n) EXPECT_EQ(found.rack_of[n], n % 2);
    ASSERT_EQ(found.overruled.size(), 1u);
    EXPECT_EQ(found.overruled[0].source, "labels");
    EXPECT_EQ(found.overruled[0].nodes.size(), kNodes / 2u);
  }
}

}  // namespace
}  // namespace riffle::rack_hints_test
