// bound_us against its definition: the formula of the architecture with every set of racks tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "topology/plan/planner.h"

namespace riffle::bound_test {
namespace {

constexpr std::uint64_t kBytes = 1'000'000;
constexpr double kUs = kBytes * 8000.0;  // over 1 kbit/s

// Symmetric rates; uplinks in kbit/s, every rack with a node.
double by_definition(const Fabric& f) {
  const std::size_t racks = f.racks.size();
  std::vector<double> m(racks, 0), rate(racks, 0), uplink(racks);
  double worst = 0;
  double all = 0;
  for (const NodeLink& n : f.nodes) {
    const auto b = static_cast<double>(n.out_kbps);
    worst = std::max(worst, 1 / b);
    m[n.rack] += 1;
    rate[n.rack] += b;
    all += b;
  }
  for (std::size_t r = 0; r < racks; ++r) {
    const auto u = static_cast<double>(f.racks[r].up_kbps);
    uplink[r] = u == 0 ? rate[r] : std::min(u, rate[r]);
    if (racks == 1) continue;
    worst = std::max(worst, 1 / uplink[r]);
    worst = std::max(worst, 2 * m[r] / (rate[r] + uplink[r]));
  }
  for (unsigned set = 0; set < 1u << racks; ++set) {
    double parts = 0, sum = 0;
    for (std::size_t r = 0; r < racks; ++r) {
      const bool apart = (set >> r & 1) != 0;
      parts += apart ? m[r] : 1;
      sum += apart ? rate[r] : uplink[r];
    }
    worst = std::max(worst, 2 * (parts - 1) / sum);
  }
  return worst * kUs;
}

TEST(Bound, EqualsTheDefinitionOnRandomFabrics) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    Fabric f;
    const int racks = 1 + static_cast<int>(random() % 6);
    for (int r = 0; r < racks; ++r) {
      const std::int64_t up = static_cast<std::int64_t>(random() % 5) * 300;
      f.racks.push_back({"r", up, up});
      for (unsigned k = 0; k <= random() % 5; ++k) {
        const std::int64_t b = 100 * (1 + static_cast<std::int64_t>(random() % 6));
        f.nodes.push_back({"n", b, b, r});
      }
    }
    if (f.size() == 1) continue;
    ASSERT_TRUE(validate(f).is_ok());
    EXPECT_NEAR(bound_us(f, kBytes) / by_definition(f), 1, 1e-12) << i;
  }
}

TEST(Bound, CountsBothDirections) {
  Fabric f = even_fabric(4, 400);
  f.nodes[2].in_kbps = 50;  // receives slowly: nobody can be done before it has everything
  EXPECT_DOUBLE_EQ(bound_us(f, kBytes), kUs / 50);
  f = even_fabric(4, 400);
  for (NodeLink& n : f.nodes) n.in_kbps = 200;  // all receive at half the rate
  EXPECT_DOUBLE_EQ(bound_us(f, kBytes), 1.5 * kUs / 200);
  f = even_fabric(4, 400);
  f.racks = {{"a", 100, 300}, {"b", 0, 0}};
  f.nodes[3].rack = 1;
  EXPECT_DOUBLE_EQ(bound_us(f, kBytes), kUs / 100);
}

TEST(Bound, IgnoresRacksWithoutNodesAndSingleNodes) {
  Fabric f = even_fabric(4, 400);
  const double plain = bound_us(f, kBytes);
  f.racks.push_back({"empty", 1, 1});
  EXPECT_DOUBLE_EQ(bound_us(f, kBytes), plain);
  EXPECT_DOUBLE_EQ(bound_us(even_fabric(1, 400), kBytes), 0);
}

}  // namespace
}  // namespace riffle::bound_test
