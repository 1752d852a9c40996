// A survey of networks that are drawn, on which flows share links unevenly and now and then one
// starts slowly: are the racks those of the network, or the plan for what was found as good?
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "test/sanitized.h"
#include "test/topology/drawn_network.h"
#include "test/topology/price_of.h"
#include "test/topology/probe_network.h"

namespace riffle::random_networks_test {
namespace {

constexpr std::int64_t kRate = kDrawnKbps;

int runs() {  // more of them by hand: RIFFLE_TEST_RUNS=1000
  const char* text = std::getenv("RIFFLE_TEST_RUNS");
  return text != nullptr ? std::max(1, std::atoi(text)) : 60;
}

bool same_racks(const Fabric& fabric, const std::vector<int>& rack_of) {
  std::map<int, int> there, back;
  for (int n = 0; n < fabric.size(); ++n) {
    const int rack = fabric.nodes[n].rack;
    if (there.emplace(rack, rack_of[n]).first->second != rack_of[n]) return false;
    if (back.emplace(rack_of[n], rack).first->second != rack) return false;
  }
  return true;
}

TEST(RandomNetworks, RacksOrAPlanAsGood) {
  int good = 0, told = 0, right = 0;
  std::vector<double> prices;
  for (int i = 0; i < runs(); ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    const int nodes = 4 + static_cast<int>(random() % 11);
    const Fabric fabric = drawn_network(random, nodes);
    ProbeNetwork network(fabric, kUnevenTcp, random());
    const probe::Findings found = survey(network, nodes, 1);
    prices.push_back(price_of(fabric, found));
    good += same_racks(fabric, found.racks.rack_of) || prices.back() <= 1.03;
    for (int r = 0; r < found.racks.count && found.racks.count > 1; ++r) {
      if (found.racks.confidence[r] < 0.8) continue;
      ++told;
      std::map<int, int> truly;
      for (int n = 0; n < nodes; ++n) {
        if (found.racks.rack_of[n] == r) truly[fabric.nodes[n].rack] = 1;
      }
      int members = 0, all = 0;
      for (int n = 0; n < nodes; ++n) {
        members += found.racks.rack_of[n] == r;
        all += fabric.nodes[n].rack == truly.begin()->first;
      }
      right += truly.size() == 1 && members == all;
    }
  }
  std::sort(prices.begin(), prices.end());
  const double nineteen = prices[prices.size() * 95 / 100];
  std::printf(
      "%d networks: racks or plan %d, time %.3f at 95 %%, %.3f at most; %d of %d racks sure\n",
      runs(), good, nineteen, prices.back(), right, told);
  EXPECT_GE(good, runs() * 95 / 100);
  EXPECT_LE(nineteen, 1.10);
  EXPECT_LE(prices.back(), 1.5);  // what the job itself corrects later
  EXPECT_GE(right, told * 80 / 100);
}

TEST(RandomNetworks, SmallRacksOfManyNodesWithRanksInTurn) {
  struct Case {
    int nodes, racks;
  };
  for (const auto& [nodes, racks] : {Case{128, 8}, {256, 16}, {512, 16}}) {
    if (kIsSanitized && nodes > 128) continue;
    Fabric f = even_fabric(nodes, kRate);
    f.racks.clear();
    for (int r = 0; r < racks; ++r) {
      f.racks.push_back(
          {"r" + std::to_string(r), kRate * nodes / racks / 4, kRate * nodes / racks / 4});
    }
    for (int n = 0; n < nodes; ++n) f.nodes[n].rack = n % racks;
    ProbeNetwork network(f, kUnevenTcp, 3);
    const probe::Findings found = survey(network, nodes, 1);
    int wrong = 0;  // pairs of nodes
    for (int a = 0; a < nodes; ++a) {
      for (int b = 0; b < a; ++b) {
        wrong += (f.nodes[a].rack == f.nodes[b].rack) !=
                 (found.racks.rack_of[a] == found.racks.rack_of[b]);
      }
    }
    EXPECT_LE(wrong, 0.005 * nodes * (nodes - 1) / 2)
        << nodes << " in " << racks << ": " << found.racks.count << " racks";
  }
}

}  // namespace
}  // namespace riffle::random_networks_test
