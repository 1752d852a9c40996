// topology/probe/survey.h: what shows nodes and uplinks that are faster than all their partners.
#include <gtest/gtest.h>

#include <set>

#include "test/topology/probe_network.h"
#include "topology/probe/survey.h"

namespace riffle::survey_fans_test {
namespace {

constexpr std::int64_t kRate = 400'000;
constexpr ProbeNoise kQuiet{.sigma = 0.01, .unfairness = 0, .outliers = 0};

// Two racks of seven nodes behind little uplinks, in each one fast node: 0 and 5.
Fabric two_fast_nodes(int in_first_rack) {
  Fabric fabric = with_racks(7, 2, kRate / 4, kRate * 29 / 100, false);
  for (int n = 0; n < 7; ++n) fabric.nodes[n].rack = n < in_first_rack ? 0 : 1;
  for (const int fast : {0, 5}) fabric.nodes[fast].out_kbps = fabric.nodes[fast].in_kbps = kRate;
  return fabric;
}

// The partners of `hub` in each second look at it, with small fans of six partners left out.
std::vector<std::set<int>> second_looks(const Fabric& fabric, int hub, probe::Findings* found) {
  ProbeNetwork network(fabric, {}, 3);
  probe::Survey survey(fabric.size(), 1);
  std::vector<std::set<int>> looks;
  while (const auto next = survey.next()) {
    const bool is_second = !probe::is_pairs(*next, fabric.size()) && next->flows.size() < 12;
    if (is_second && next->flows.front().from == hub) {
      std::set<int>& spokes = looks.emplace_back();
      for (const probe::Flow& f : next->flows) spokes.insert(f.from == hub ? f.to : f.from);
    }
    survey.add(network.run(*next));
  }
  *found = survey.findings();
  return looks;
}

TEST(Survey, OneFastNodeAmongSlowOnesIsMeasuredByFans) {
  Fabric fabric = even_fabric(12, kRate / 8);
  fabric.nodes[5].out_kbps = fabric.nodes[5].in_kbps = kRate;
  ProbeNetwork network(fabric, {}, 7);
  const probe::Findings found = survey(network, 12, 1);
  EXPECT_LE(worst_rate_error(fabric, found), 0.10);
  EXPECT_EQ(found.racks.count, 1);
}

// Its rack has slower ones only, and its other partners are behind an uplink: pairs show no more of
// it than they can, however many rounds there are.
TEST(Survey, TheTimeDoesNotEndBeforeFansShowAFastNode) {
  const Fabric fabric = two_fast_nodes(4);
  for (int most = 16; most <= 24; ++most) {
    ProbeNetwork network(fabric, {}, static_cast<std::uint64_t>(most));
    probe::Survey survey(7, 1);
    for (int round = 0; round < most; ++round) {
      const auto next = survey.next(most - round);
      if (!next) break;
      survey.add(network.run(*next));
    }
    const probe::Findings& found = survey.findings();
    EXPECT_EQ(found.racks.count, 2) << most;
    // Rack 0 takes no more than two slow nodes and the uplink give.
    EXPECT_GE(found.rates.out[0].kbps, 2.5 * kRate / 4) << most;
    EXPECT_GE(found.rates.out[5].kbps, 2.5 * kRate / 4) << most;
  }
}

// More of the other rack's would take from each other at its uplink.
TEST(Survey, TheSecondLookFillsAnUplinkOnce) {
  probe::Findings found;
  const auto looks = second_looks(two_fast_nodes(4), 0, &found);
  ASSERT_EQ(looks.size(), 2u);
  for (const auto& spokes : looks) {
    EXPECT_EQ(spokes, (std::set<int>{1, 2, 3, 5})) << "its rack, and the other's fastest";
  }
  EXPECT_NEAR(found.rates.out[0].kbps, kRate, 0.1 * kRate);
}

TEST(Survey, TheSecondLookHasThreePartnersWhereUplinksAreFullBefore) {
  probe::Findings found;
  const auto looks = second_looks(two_fast_nodes(2), 0, &found);
  ASSERT_FALSE(looks.empty());
  for (const auto& spokes : looks) EXPECT_EQ(spokes.size(), 3u);
}

// Of 7 nodes: seven rounds of fans, and two for the second look.
TEST(Survey, FansBeginInTimeForASecondLookWhereRacksAreSure) {
  const Fabric fabric = two_fast_nodes(4);
  ProbeNetwork network(fabric, kQuiet, 1);
  probe::Survey survey(7, 1);
  for (int round = 0; round < 7; ++round) survey.add(network.run(*survey.next()));
  for (const double sure : survey.findings().racks.confidence) ASSERT_GE(sure, 0.969);
  probe::Survey other = survey;
  EXPECT_TRUE(probe::is_pairs(*survey.next(10), 7));
  EXPECT_FALSE(probe::is_pairs(*other.next(9), 7));
}

// In rounds of pairs it gives no more than each of the others takes.
TEST(Survey, TheFastestUplinkIsMeasuredAgainstAllOthersAtOnce) {
  Fabric fabric = with_racks(12, 3, kRate, kRate, false);
  fabric.racks[2].up_kbps = fabric.racks[2].down_kbps = kRate * 7 / 4;
  ProbeNetwork network(fabric, {}, 1);
  const probe::Findings found = survey(network, 12, 1);
  ASSERT_EQ(found.racks.count, 3);
  const auto fastest = static_cast<std::size_t>(found.racks.rack_of[8]);
  EXPECT_NEAR(found.racks.uplinks[fastest].up_kbps, kRate * 7 / 4, 0.15 * kRate * 7 / 4);
}

}  // namespace
}  // namespace riffle::survey_fans_test
