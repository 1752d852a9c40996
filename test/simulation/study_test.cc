// A reduced planner study (bench/planner_study.cc): the first fabrics of each class and the worst
// that were found, so that a planner or engine that gets worse in time is noticed. The limits are a
// little above what these fabrics take; the aims are in docs/algorithms.md.
#include "lab/simulation/study.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace riffle::sim::study_test {
namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;

Studied studied(FabricClass kind, std::uint64_t seed, std::uint64_t bytes) {
  const auto result = study(draw_fabric(kind, seed), bytes, {}, {});
  EXPECT_TRUE(result) << result.status().message();
  return result ? *result : Studied{};
}

struct Limits {
  double x = 0;           // of every fabric
  double prediction = 0;  // off by at most, in the median fabric
};
void expect_within(FabricClass kind, const std::vector<std::uint64_t>& seeds, std::uint64_t bytes,
                   const Limits& limits) {
  std::vector<double> errors;
  for (const std::uint64_t seed : seeds) {
    const Studied s = studied(kind, seed, bytes);
    EXPECT_GE(s.x(), 1 - 1e-6) << "seed " << seed << ": faster than the bound";
    EXPECT_LE(s.x(), limits.x) << "seed " << seed << ", plan \"" << s.plan << '"';
    errors.push_back(std::abs(s.prediction() - 1));
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], limits.prediction);
}

TEST(StudyTest, FabricsFollowFromTheirSeed) {
  const Fabric a = draw_fabric(FabricClass::kUnevenRacks, 7);
  const Fabric b = draw_fabric(FabricClass::kUnevenRacks, 7);
  const Fabric c = draw_fabric(FabricClass::kUnevenRacks, 8);
  ASSERT_EQ(a.size(), b.size());
  for (int n = 0; n < a.size(); ++n) EXPECT_EQ(a.nodes[n].out_kbps, b.nodes[n].out_kbps);
  EXPECT_NE(bound_us(a, kMegabyte), bound_us(c, kMegabyte));
  for (const auto& known : fabric_classes()) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      EXPECT_TRUE(validate(draw_fabric(known.value, seed)).is_ok()) << known.name << " " << seed;
    }
  }
}
TEST(StudyTest, FlatFabricsAt64MiB) {
  expect_within(FabricClass::kFlat, {1, 2, 4, 5, 11, 12, 43, 46, 192}, 64 * kMegabyte,
                {.x = 1.16, .prediction = 0.03});
}

// 64 equal nodes are the network on which a grid whose lanes had different groups was slowest.
TEST(StudyTest, EqualNodesInAGrid) {
  const Studied s = studied(FabricClass::kHalfRate, 64, 16 * kMegabyte);
  EXPECT_EQ(s.plan, "grid 8x8");
  EXPECT_LE(s.x(), 1.05);
}

TEST(StudyTest, FlatFabricsAt1MiB) {
  expect_within(FabricClass::kFlat, {2, 3, 5, 6, 8, 10, 12, 20, 32, 42}, kMegabyte,
                {.x = 1.14, .prediction = 0.12});
}

TEST(StudyTest, RacksOfEvenNodes) {
  expect_within(FabricClass::kEvenRacks, {1, 2, 4, 5, 8, 10, 17, 25, 42, 50, 131, 147},
                64 * kMegabyte, {.x = 1.14, .prediction = 0.10});
}

TEST(StudyTest, RacksOfUnevenNodes) {
  expect_within(FabricClass::kUnevenRacks, {1, 2, 6, 7, 14, 24, 39, 53, 69}, 64 * kMegabyte,
                {.x = 1.14, .prediction = 0.10});
}

// One of 64 nodes at half the rate: within 6 % of the even network's time, not only of its bound.
TEST(StudyTest, OneSlowNodeOf64CostsLittle) {
  const Studied slow = studied(FabricClass::kHalfRate, 63, 64 * kMegabyte);
  const Studied even = studied(FabricClass::kHalfRate, 64, 64 * kMegabyte);
  EXPECT_LE(slow.simulated_us, 1.06 * even.simulated_us);
}

}  // namespace
}  // namespace riffle::sim::study_test
