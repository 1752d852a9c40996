// Racks guessed from what a direct plan sent along all pairs.
#include "topology/probe/tomography.h"

#include <gtest/gtest.h>

namespace riffle::tomography_test {
namespace {

constexpr std::int64_t kRate = 400'000;

// Eight nodes in two racks, in turn: pairs within a rack take a seventh of the link, the others
// what their uplink leaves; `noise` of each.
std::vector<std::vector<probe::PairTime>> two_racks(double near_kbps, double far_kbps) {
  std::vector<std::vector<probe::PairTime>> pairs(8, std::vector<probe::PairTime>(8));
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      if (a == b) continue;
      const double wander = 1 + 0.1 * ((3 * a + 5 * b) % 5 - 2);
      const double kbps = (a % 2 == b % 2 ? near_kbps : far_kbps) * wander;
      const std::uint64_t bytes = 8 << 20;
      pairs[a][b] = {bytes, static_cast<std::uint64_t>(bytes * 8e3 / kbps)};
    }
  }
  return pairs;
}

TEST(Tomography, TwoRacksAndTheirUplinks) {
  const auto found = probe::racks_from_pairs(two_racks(57'000, 12'500), even_fabric(8, kRate));
  ASSERT_FALSE(found.empty());
  const Fabric& f = found.front();
  ASSERT_EQ(f.racks.size(), 2u);
  for (int n = 0; n < 8; ++n) EXPECT_EQ(f.nodes[n].rack, f.nodes[n % 2].rack) << n;
  for (const RackLink& r : f.racks) {  // 16 pairs leave a rack, the slowest is heard of longest
    EXPECT_NEAR(static_cast<double>(r.up_kbps), 16 * 12'500 * 0.85, 16 * 12'500 * 0.15);
  }
  EXPECT_EQ(f.nodes[3].out_kbps, kRate);
}

// All that goes to or comes from the third rack is held up there. What the others' uplinks have is
// not known of that, but from what they sent to each other meanwhile, and from what was told.
TEST(Tomography, AnUplinkIsNotBlamedForAnother) {
  constexpr std::uint64_t kBytes = 1 << 20, kHeldUpUs = 3'600'000, kPassedUs = 400'000;
  std::vector<std::vector<probe::PairTime>> pairs(12, std::vector<probe::PairTime>(12));
  for (int a = 0; a < 12; ++a) {
    for (int b = 0; b < 12; ++b) {
      const bool is_near = a % 3 == b % 3, is_held_up = a % 3 == 2 || b % 3 == 2;
      if (a != b) pairs[a][b] = {kBytes, is_near ? 50'000 : is_held_up ? kHeldUpUs : kPassedUs};
    }
  }
  Fabric known = even_fabric(12, kRate);
  const auto up_kbps = [&](std::size_t rack_of_node) {
    for (const Fabric& f : probe::racks_from_pairs(pairs, known)) {
      if (f.racks.size() != 3) continue;
      const int rack = f.nodes[rack_of_node].rack;
      return static_cast<double>(f.racks[static_cast<std::size_t>(rack)].up_kbps);
    }
    return 0.0;
  };
  const double held_up = 32 * kBytes * 8e3 / kHeldUpUs, passed = 16 * kBytes * 8e3 / kPassedUs;
  EXPECT_NEAR(up_kbps(2), held_up, 0.1 * held_up);
  EXPECT_NEAR(up_kbps(0), passed, 0.1 * passed);
  known.racks = {{"a", 200'000, 200'000}, {"b", 2'000'000, 2'000'000}, {"c", 300'000, 300'000}};
  for (int n = 0; n < 12; ++n) known.nodes[static_cast<std::size_t>(n)].rack = n % 3;
  std::swap(known.nodes[0].rack, known.nodes[1].rack);
  EXPECT_EQ(up_kbps(3), 200'000);
  EXPECT_NEAR(up_kbps(1), passed, 0.1 * passed);
  EXPECT_NEAR(up_kbps(2), held_up, 0.1 * held_up);
}

// Nodes 1 and 3 own nothing, so they send nothing to each other, and all that is believed of them
// they did through the uplink.
TEST(Tomography, NodesThatSendOnlyToOtherRacksMayStandInOneAndBeFast) {
  constexpr std::uint64_t kBytes = 8 << 20, kSlowUs = 1'600'000, kFastUs = 200'000;
  std::vector<std::vector<probe::PairTime>> pairs(4, std::vector<probe::PairTime>(4));
  for (const int a : {0, 2}) {
    for (const int b : {1, 3}) pairs[a][b] = pairs[b][a] = {kBytes, kSlowUs};
  }
  pairs[0][2] = pairs[2][0] = {kBytes, kFastUs};
  Fabric known = even_fabric(4, kRate);
  for (const int node : {1, 3}) known.nodes[node].out_kbps = known.nodes[node].in_kbps = kRate / 5;
  const auto found = probe::racks_from_pairs(pairs, known);
  ASSERT_FALSE(found.empty());
  const Fabric& f = found.front();
  EXPECT_EQ(f.nodes[1].rack, f.nodes[3].rack);
  EXPECT_EQ(f.nodes[0].rack, f.nodes[2].rack);
  EXPECT_NE(f.nodes[0].rack, f.nodes[1].rack);
  for (const NodeLink& node : f.nodes) EXPECT_EQ(node.out_kbps, kRate) << node.name;
  known.nodes[3].out_kbps = kRate / 2;  // not the share of one link
  EXPECT_EQ(probe::racks_from_pairs(pairs, known).front().nodes[1].out_kbps, kRate / 5);
}

TEST(Tomography, PairsThatAreAlikeSuggestNothing) {
  EXPECT_TRUE(probe::racks_from_pairs(two_racks(57'000, 50'000), even_fabric(8, kRate)).empty());
}

TEST(Tomography, PairsThatSentNothingSuggestNothing) {
  const std::vector<std::vector<probe::PairTime>> none(8, std::vector<probe::PairTime>(8));
  EXPECT_TRUE(probe::racks_from_pairs(none, even_fabric(8, kRate)).empty());
}

}  // namespace
}  // namespace riffle::tomography_test
