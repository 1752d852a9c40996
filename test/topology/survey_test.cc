// Active probing on a model of a network: rates, racks, and what must not be found.
#include "topology/probe/survey.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "test/sanitized.h"
#include "test/topology/probe_network.h"
#include "topology/probe/live_fabric.h"
#include "topology/probe/pair_rates.h"

namespace riffle::survey_test {
namespace {

constexpr std::int64_t kRate = 400'000;

int runs() {  // more of them by hand: RIFFLE_TEST_RUNS=1000 survey_test
  const char* text = std::getenv("RIFFLE_TEST_RUNS");
  return text != nullptr ? std::max(1, std::atoi(text)) : cases(30);
}

probe::Sample steady(std::int64_t kbps) { return {kbps, kbps, true, 9}; }
probe::Sample unsteady(std::int64_t kbps) { return {kbps, kbps, false, 9}; }

// The same partition, whatever the racks are called?
bool same_racks(const Fabric& fabric, const std::vector<int>& rack_of) {
  std::map<int, int> there;
  std::set<int> used;
  for (int n = 0; n < fabric.size(); ++n) {
    const auto [it, is_new] = there.emplace(fabric.nodes[n].rack, rack_of[n]);
    if (it->second != rack_of[n]) return false;
    if (is_new && !used.insert(rack_of[n]).second) return false;
  }
  return true;
}

// Every rack: at least two nodes and an uplink that can be the limit. No node is so slow that no
// uplink ever holds it back: where such a node stands nothing could tell.
Fabric random_racks(std::mt19937_64& random) {
  const int racks = 2 + static_cast<int>(random() % 4);
  Fabric f;
  std::vector<int> rack_of;
  const bool even_nodes = random() % 2 == 0;
  for (int r = 0; r < racks; ++r) {
    const int members = 2 + static_cast<int>(random() % 7);
    for (int m = 0; m < members; ++m) rack_of.push_back(r);
  }
  if (random() % 2 == 0) probe::shuffle(&rack_of, random);
  for (std::size_t n = 0; n < rack_of.size(); ++n) {
    const std::int64_t rate = even_nodes || random() % 4 != 0 ? kRate : kRate / 2;
    f.nodes.push_back({"n" + std::to_string(n), rate, rate, rack_of[n]});
  }
  for (int r = 0; r < racks; ++r) {
    std::int64_t inside = 0, outside = 0;
    for (const auto& node : f.nodes) (node.rack == r ? inside : outside) += node.out_kbps;
    const double share = 0.1 + 0.4 * static_cast<double>(random() % 1000) / 1000;
    const auto uplink =
        static_cast<std::int64_t>(share * static_cast<double>(std::min(inside, outside)));
    f.racks.push_back({"r" + std::to_string(r), uplink, uplink});
  }
  return f;
}

TEST(Survey, RandomRacksAreFoundAndRatesMeasured) {
  int found_all = 0, rates_right = 0;
  for (int i = 0; i < runs(); ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    const Fabric fabric = random_racks(random);
    ProbeNetwork network(fabric, {}, random());
    const probe::Findings found = survey(network, fabric.size(), 1);
    const bool racks = same_racks(fabric, found.racks.rack_of);
    const bool rates = worst_rate_error(fabric, found) <= 0.10;
    found_all += racks;
    rates_right += rates;
    if (racks && rates) continue;
    std::string text = "seed " + std::to_string(i) + ": " + std::to_string(found.racks.count) +
                       " racks found, worst rate " +
                       std::to_string(worst_rate_error(fabric, found)) + ", held back " +
                       std::to_string(found.racks.held_back) + "; true:";
    for (std::size_t r = 0; r < fabric.racks.size(); ++r) {
      text += " [" + std::to_string(fabric.racks[r].up_kbps / 1000) + ":";
      for (int n = 0; n < fabric.size(); ++n) {
        if (fabric.nodes[n].rack == static_cast<int>(r)) {
          text += " " + std::to_string(fabric.nodes[n].out_kbps / 1000) + "/" +
                  std::to_string(found.racks.rack_of[n]);
        }
      }
      text += "]";
    }
    std::printf("%s\n", text.c_str());
  }
  EXPECT_GE(found_all, runs() * 95 / 100);
  EXPECT_GE(rates_right, runs() * 95 / 100);
}

TEST(Survey, NetworksWithoutRacksAreNotSplit) {
  int split = 0, rates_right = 0;
  for (int i = 0; i < runs(); ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    const int nodes = 2 + static_cast<int>(random() % 20);
    Fabric fabric = even_fabric(nodes, kRate);
    const int kind = i % 3;  // even; one slow node; any mixture
    for (int n = 0; n < nodes && kind > 0; ++n) {
      const std::int64_t part = kind == 1 ? (n == 0 ? 4 : 1) : 1 + static_cast<int>(random() % 4);
      fabric.nodes[n].out_kbps = fabric.nodes[n].in_kbps = kRate / part;
    }
    ProbeNetwork network(fabric, {}, random());
    const probe::Findings found = survey(network, nodes, 1);
    split += found.racks.count > 1;
    // The one node that is faster than all others together, or than its only partner, cannot be
    // measured.
    std::vector<std::int64_t> rates;
    for (const auto& node : fabric.nodes) rates.push_back(node.out_kbps);
    std::sort(rates.begin(), rates.end());
    std::int64_t others = 0;
    for (int n = 0; n + 1 < nodes; ++n) others += rates[n];
    if (rates[nodes - 1] > others) {
      for (auto& node : fabric.nodes) {
        node.out_kbps = node.in_kbps = std::min(node.out_kbps, others);
      }
    }
    const double worst = worst_rate_error(fabric, found);
    rates_right += worst <= 0.10;
    if (worst > 0.10 || found.racks.count > 1) {
      std::printf("seed %d: %d nodes, %d racks, worst rate %.3f\n", i, nodes, found.racks.count,
                  worst);
    }
  }
  EXPECT_LE(split, runs() / 100);
  EXPECT_GE(rates_right, runs() * 95 / 100);
}

TEST(Survey, TheProfilesOfTheBench) {
  for (int i = 0; i < 20; ++i) {
    for (const bool interleaved : {false, true}) {
      for (const std::int64_t uplink : {50'000, 200'000, 800'000}) {
        const Fabric fabric = with_racks(8, 2, kRate, uplink, interleaved);
        ProbeNetwork network(fabric, {}, static_cast<std::uint64_t>(i));
        const probe::Findings found = survey(network, 8, 1);
        EXPECT_TRUE(same_racks(fabric, found.racks.rack_of)) << uplink << " seed " << i;
        if (found.racks.count != 2) continue;
        for (const auto& u : found.racks.uplinks) {
          EXPECT_NEAR(u.up_kbps, uplink, 0.1 * uplink);
          EXPECT_NEAR(u.down_kbps, uplink, 0.1 * uplink);
        }
      }
    }
  }
}

TEST(Survey, SitesFarFromEachOtherHaveTheirOwnLatency) {
  Fabric fabric = with_racks(12, 3, kRate, 200'000, true);
  fabric.latency_us = 5'000;
  fabric.rack_latency_us = 20;
  ProbeNetwork sites(fabric, {}, 3);
  const probe::Findings far = survey(sites, 12, 1);
  EXPECT_NEAR(static_cast<double>(far.latency_us), 5'000, 2'000);
  EXPECT_NEAR(static_cast<double>(far.rack_latency_us), 20, 10);
  fabric.latency_us = 40;
  ProbeNetwork racks(fabric, {}, 3);
  EXPECT_EQ(survey(racks, 12, 1).rack_latency_us, 0) << "what queues do makes no sites";
}

TEST(Survey, RoundsAreBounded) {
  for (const int nodes : {2, 3, 8, 16, 33, 64}) {
    if (kIsSanitized && nodes == 64) continue;
    ProbeNetwork network(with_racks(nodes, nodes >= 8 ? 2 : 1, kRate, nodes * kRate / 8, true), {},
                         1);
    const probe::Findings found = survey(network, nodes, 1);
    EXPECT_LE(found.rounds, nodes <= 12 ? 2 * nodes + 12 : nodes + 12) << nodes;
  }
  for (const int nodes : {65, 200}) {
    if (kIsSanitized && nodes == 200) continue;
    ProbeNetwork network(with_racks(nodes, 4, kRate, kRate * nodes / 16, false), {}, 1);
    const probe::Findings found = survey(network, nodes, 1);
    const int steps = static_cast<int>(std::ceil(std::log2(nodes)));
    EXPECT_LE(found.rounds, 5 * steps + 26) << nodes;
    EXPECT_LE(network.flows(), nodes * (5 * steps + 26)) << nodes;  // O(N log N)
  }
}

TEST(Survey, LargeClustersInRacksOfManyNodes) {
  constexpr int kNodes = 128;
  for (const bool interleaved : {false, true}) {
    const Fabric fabric = with_racks(kNodes, 4, kRate, 32 * kRate / 4, interleaved);
    ProbeNetwork network(fabric, {}, 3);
    const probe::Findings found = survey(network, kNodes, 1);
    int right = 0;  // pairs of nodes
    for (int a = 0; a < kNodes; ++a) {
      for (int b = 0; b < a; ++b) {
        right += (fabric.nodes[a].rack == fabric.nodes[b].rack) ==
                 (found.racks.rack_of[a] == found.racks.rack_of[b]);
      }
    }
    EXPECT_GE(right, 0.97 * kNodes * (kNodes - 1) / 2) << found.racks.count << " racks";
    EXPECT_LE(worst_rate_error(fabric, found), 0.15);
  }
}

TEST(Survey, SameSamplesSameCourse) {
  const Fabric fabric = with_racks(16, 4, kRate, kRate, true);
  ProbeNetwork a(fabric, {}, 5), b(fabric, {}, 5);
  probe::Survey x(16, 9), y(16, 9);
  while (true) {
    const auto p = x.next(), q = y.next();
    ASSERT_EQ(p, q);
    if (!p) break;
    x.add(a.run(*p));
    y.add(b.run(*q));
  }
}

TEST(LiveFabric, EvenRatesBecomeEqualAndLinkRates) {
  ProbeNetwork network(even_fabric(8, kRate), {}, 5);
  const probe::Findings found = survey(network, 8, 1);
  std::vector<std::string> names;
  for (int n = 0; n < 8; ++n) names.push_back("node" + std::to_string(n));
  const Result<Fabric> fabric = probe::to_fabric(found, names, 1500);
  ASSERT_TRUE(fabric);
  for (const NodeLink& n : fabric->nodes) {
    EXPECT_EQ(n.out_kbps, fabric->nodes[0].out_kbps);
    EXPECT_EQ(n.in_kbps, fabric->nodes[0].out_kbps);
    EXPECT_NEAR(static_cast<double>(n.out_kbps), kRate * 1514.0 / 1448, 0.03 * kRate);
  }
  EXPECT_NE(probe::describe(found, *fabric).find("no racks"), std::string::npos);
}

TEST(PairRates, TheMostOfARoundOfPairs) {
  const probe::Observed pairs{{{{0, 1}, {1, 2}, {2, 0}}}, {steady(100), steady(90), {}}};
  const probe::Observed again{{{{0, 1}, {1, 0}}}, {steady(120), steady(70)}};
  const probe::Observed fan{{{{0, 1}, {0, 2}}}, {steady(500), steady(500)}};
  const auto rates = probe::pair_rates(3, {pairs, again, fan});
  const std::vector<std::vector<std::int64_t>> expected = {{0, 120, 0}, {70, 0, 90}, {0, 0, 0}};
  EXPECT_EQ(rates, expected);
}

// As 30 Mbit/s beside 400 were once: of few frames in a round no flow is steady, and now and then
// none is left to count. Steady values count alone.
TEST(NodeRates, ANodeWhoseFlowsWereNeverSteadyHasARate) {
  constexpr std::int64_t kFast = 380'000;
  std::vector<probe::Observed> all;
  const std::vector<std::int64_t> in = {28'116, 42'839, 28'615, 0, 26'763};
  const std::vector<std::int64_t> out = {29'749, 27'203, 28'992, 26'411, 0};
  for (std::size_t i = 0; i < in.size(); ++i) {
    all.push_back({{{{0, 1}, {1, 2}, {2, 0}}}, {steady(kFast), unsteady(in[i]), unsteady(out[i])}});
    all.push_back({{{{1, 0}, {0, 1}}}, {steady(kFast), unsteady(2 * kFast)}});
  }
  const probe::NodeRates rates = probe::estimate_node_rates(3, all);
  EXPECT_NEAR(rates.in[2].kbps, 28'000, 1'500);
  EXPECT_NEAR(rates.out[2].kbps, 28'000, 1'500);
  EXPECT_LT(rates.in[2].confidence, 0.5);
  for (const int fast : {0, 1}) {
    EXPECT_NEAR(rates.out[fast].kbps, kFast, 1) << fast;
    EXPECT_NEAR(rates.in[fast].kbps, kFast, 1) << fast;
    EXPECT_GT(rates.in[fast].confidence, 0.5) << fast;
  }
}

// Three flows into one node, each of which had the link alone for a third of the time.
TEST(NodeRates, FlowsThatTookTurnsAreNotAddedUp) {
  constexpr std::int64_t kFast = 400'000, kSlow = 100'000;
  const probe::Sample turn{kSlow, kSlow / 3, true, 9};
  const probe::Observed fan{{{{1, 0}, {2, 0}, {3, 0}}}, {turn, turn, turn}};
  const probe::Observed pairs{{{{1, 0}, {2, 3}}}, {steady(kSlow), steady(kFast)}};
  const probe::NodeRates rates = probe::estimate_node_rates(4, {fan, pairs, fan});
  EXPECT_NEAR(rates.in[0].kbps, kSlow, 10);
}

// Node 0 with three partners: eight rounds of pairs, and two in which all of them meet it at once.
probe::NodeRates with_three_partners(std::int64_t alone, std::int64_t together,
                                     std::int64_t partners,
                                     const std::vector<int>& rack_of = {0, 0, 0, 0}) {
  const probe::Sample third = steady(together / 3);
  const probe::Observed pairs{{{{0, 1}, {2, 0}, {3, 2}, {1, 3}}},
                              {steady(alone), steady(alone), steady(partners), steady(partners)}};
  const probe::Observed others{{{{1, 2}, {2, 3}, {3, 1}}},
                               {steady(partners), steady(partners), steady(partners)}};
  const probe::Observed in{{{{1, 0}, {2, 0}, {3, 0}}}, {third, third, third}};
  const probe::Observed out{{{{0, 1}, {0, 2}, {0, 3}}}, {third, third, third}};
  std::vector<probe::Observed> all = {in, out};
  for (int i = 0; i < 8; ++i) all.insert(all.end(), {pairs, others});
  return probe::estimate_node_rates(4, all, rack_of);
}

TEST(NodeRates, SlowerPartnersDoNotHideWhatTheyShowTogether) {
  const probe::NodeRates fast = with_three_partners(200'000, 250'000, 200'000);
  EXPECT_NEAR(fast.out[0].kbps, 250'000, 5);
  EXPECT_NEAR(fast.in[0].kbps, 250'000, 5);
  for (const int partner : {1, 3}) EXPECT_NEAR(fast.out[partner].kbps, 200'000, 5) << partner;
}

// Each of its pairs crosses an uplink, so that nothing but its fans shows that it is no slow node.
TEST(NodeRates, AFanShowsWhatANodeBehindAnUplinkCanDo) {
  const probe::NodeRates rates = with_three_partners(160'000, 234'000, 250'000, {0, 1, 1, 1});
  EXPECT_NEAR(rates.out[0].kbps, 234'000, 5);
  EXPECT_NEAR(rates.in[0].kbps, 234'000, 5);
}

// Bursts of a fan, where partners that can do more show every time that the node cannot.
TEST(NodeRates, FewSumsThatAreTooHighRaiseNothing) {
  const probe::NodeRates slow = with_three_partners(100'000, 138'000, 250'000);
  EXPECT_NEAR(slow.out[0].kbps, 100'000, 5);
  EXPECT_NEAR(slow.in[0].kbps, 100'000, 5);
}

TEST(NodeRates, ANodeAtWhichNothingArrivedHasNone) {
  const probe::Observed round{{{{0, 1}, {1, 0}}}, {unsteady(0), unsteady(5'000)}};
  const probe::NodeRates rates = probe::estimate_node_rates(2, {round, round, round});
  EXPECT_EQ(rates.in[1].kbps, 0);
  EXPECT_NEAR(rates.out[1].kbps, 5'000, 1);
}

TEST(LiveFabric, ASilentNodeIsAnErrorThatNamesIt) {
  probe::Findings found;
  found.rates.out.assign(3, {100, 1, false});
  found.rates.in = found.rates.out;
  found.rates.in[2].kbps = 0;
  found.racks.rack_of.assign(3, 0);
  const Result<Fabric> fabric = probe::to_fabric(found, {"a", "b", "c"}, 1500);
  ASSERT_FALSE(fabric);
  EXPECT_EQ(fabric.status().message(), "nothing arrived at c");
}

TEST(LiveFabric, SlowNodesAndRacksAreNamed) {
  Fabric truth = with_racks(8, 2, kRate, kRate / 2, true);
  truth.nodes[3].out_kbps = truth.nodes[3].in_kbps = kRate / 4;
  ProbeNetwork network(truth, {}, 5);
  const probe::Findings found = survey(network, 8, 1);
  std::vector<std::string> names;
  for (int n = 0; n < 8; ++n) names.push_back("node" + std::to_string(n));
  const Result<Fabric> fabric = probe::to_fabric(found, names, 1500);
  ASSERT_TRUE(fabric);
  const std::string text = probe::describe(found, *fabric);
  EXPECT_NE(text.find("slow: node3"), std::string::npos) << text;
  EXPECT_NE(text.find("node0, node2, node4, node6 behind an uplink"), std::string::npos) << text;
}

}  // namespace
}  // namespace riffle::survey_test
