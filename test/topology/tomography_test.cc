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

TEST(Tomography, PairsThatAreAlikeSuggestNothing) {
  EXPECT_TRUE(probe::racks_from_pairs(two_racks(57'000, 50'000), even_fabric(8, kRate)).empty());
}

TEST(Tomography, PairsThatSentNothingSuggestNothing) {
  const std::vector<std::vector<probe::PairTime>> none(8, std::vector<probe::PairTime>(8));
  EXPECT_TRUE(probe::racks_from_pairs(none, even_fabric(8, kRate)).empty());
}

}  // namespace
}  // namespace riffle::tomography_test
