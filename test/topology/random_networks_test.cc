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

struct Tally {
  int good = 0, told = 0, right = 0;
  std::vector<double> prices;

  void add_racks(const Fabric& fabric, const probe::Racks& found) {
    for (int r = 0; r < found.count && found.count > 1; ++r) {
      if (found.confidence[r] < 0.8) continue;
      ++told;
      std::map<int, int> truly;
      for (int n = 0; n < fabric.size(); ++n) {
        if (found.rack_of[n] == r) truly[fabric.nodes[n].rack] = 1;
      }
      int members = 0, all = 0;
      for (int n = 0; n < fabric.size(); ++n) {
        members += found.rack_of[n] == r;
        all += fabric.nodes[n].rack == truly.begin()->first;
      }
      right += truly.size() == 1 && members == all;
    }
  }
  double nineteen() const { return prices[prices.size() * 95 / 100]; }
};

// Of so many networks; a network has least nodes and up to `more` more.
Tally surveyed(int networks, int least, int more) {
  Tally tally;
  for (int i = 0; i < networks; ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    const int nodes = least + static_cast<int>(random() % static_cast<std::uint64_t>(more + 1));
    const Fabric fabric = drawn_network(random, nodes);
    ProbeNetwork network(fabric, kUnevenTcp, random());
    const probe::Findings found = survey(network, nodes, 1);
    tally.prices.push_back(price_of(fabric, found));
    tally.good += same_racks(fabric, found.racks.rack_of) || tally.prices.back() <= 1.03;
    tally.add_racks(fabric, found.racks);
  }
  std::sort(tally.prices.begin(), tally.prices.end());
  std::printf(
      "%d networks of %d to %d nodes: racks or plan %d, time %.3f at 95 %%, %.3f at most; %d of %d "
      "racks sure\n",
      networks, least, least + more, tally.good, tally.nineteen(), tally.prices.back(), tally.right,
      tally.told);
  return tally;
}

TEST(RandomNetworks, RacksOrAPlanAsGood) {
  const Tally tally = surveyed(runs(), 4, 10);
  EXPECT_GE(tally.good, runs() * 95 / 100);
  EXPECT_LE(tally.nineteen(), 1.10);
  EXPECT_LE(tally.prices.back(), 1.5);  // what the job itself corrects later
  EXPECT_GE(tally.right, tally.told * 80 / 100);
}

// Racks with mild uplinks are taken for one here and there, which costs up to 1.4 times the time
// (docs/known-limits.md: 95 % within 1.10 are wanted).
TEST(RandomNetworks, OfUpTo256Nodes) {
  const int networks = std::max(4, runs() / 20);
  const Tally tally = surveyed(networks, 15, 241);
  EXPECT_GE(tally.good, networks * 90 / 100);
  EXPECT_LE(tally.nineteen(), 1.25);
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
    int whole = 0;
    for (int r = 0; r < racks; ++r) {
      const int as = found.racks.rack_of[r];
      int differ = 0;
      for (int n = 0; n < nodes; ++n) differ += (n % racks == r) != (found.racks.rack_of[n] == as);
      whole += differ == 0;
    }
    EXPECT_EQ(whole, racks) << nodes << " in " << racks << ": " << found.racks.count << " racks";
  }
}

}  // namespace
}  // namespace riffle::random_networks_test
