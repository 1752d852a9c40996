// topology/plan/mixture.h: on random fabrics with racks the mixture's plan computes the sum and
// loads no link longer than the bound, up to the raster of its cuts.
#include "topology/plan/mixture.h"

#include <gtest/gtest.h>

#include <random>

#include "plugin/collective/engine/program.h"
#include "test/topology/plan_executor.h"
#include "topology/plan/loads.h"
#include "topology/plan/planner.h"

namespace riffle::mixture_test {
namespace {

constexpr std::uint64_t kBytes = 64 << 20;

// Racks of 1 to 8 nodes behind uplinks of 1/8 of the nodes' rate up to all of it.
Fabric random_racks(std::mt19937& random, bool uneven) {
  constexpr std::int64_t kRate = 10'000'000;
  constexpr int kDivisors[] = {1, 2, 4, 10};
  Fabric f;
  const int racks = 2 + static_cast<int>(random() % 7);
  for (int r = 0; r < racks; ++r) {
    std::int64_t sum = 0;
    for (unsigned i = 0, m = 1 + random() % 8; i < m; ++i) {
      const std::int64_t rate = uneven ? kRate / kDivisors[random() % 4] : kRate;
      f.nodes.push_back({"n" + std::to_string(f.size()), rate, rate, r});
      sum += rate;
    }
    const std::int64_t uplink = sum * 4 / static_cast<std::int64_t>(4 + random() % 29);
    f.racks.push_back({"r" + std::to_string(r), uplink, uplink});
  }
  return f;
}

double busiest_over_bound(const Fabric& f, const PlanSet& plans) {
  return link_times(f, plans, kBytes).front().time_us / bound_us(f, kBytes);
}

PlanSet lanes_of(const FabricView& view, const Mixture& mixture) {
  PlanSet plans{{}, "mixture"};
  for (int lane = 0; lane < 4; ++lane) {
    plans.lanes.push_back(mixed_plan(view, lane_order(view, lane, 1), mixture));
  }
  return plans;
}

TEST(Mixture, ReachesTheBoundOnRandomFabrics) {
  std::mt19937 random(2024);
  double worst = 0;
  for (int i = 0; i < 600; ++i) {
    const Fabric f = random_racks(random, i % 2 == 0);
    const FabricView view(f);
    const Mixture mixture = best_mixture(view);
    ASSERT_FALSE(mixture.segments.empty());
    const PlanSet plans = lanes_of(view, mixture);
    ASSERT_TRUE(validate(plans).is_ok()) << i << ": " << validate(plans).message();
    if (i % 10 == 0) {
      ASSERT_EQ(run_on_integers(plans.lanes[i / 10 % 4], 997, 1), "") << i;
    }
    for (int n = 0; n < f.size(); ++n) ASSERT_TRUE(compile(plans.lanes[1], n).is_ok()) << i;
    const double x = busiest_over_bound(f, plans);
    EXPECT_LE(x, 1.02) << i << ": " << mixture.segments.size() << " segments";
    worst = std::max(worst, x);
  }
  RecordProperty("worst", std::to_string(worst));
}

// A wide rack behind a narrow uplink next to one whose uplink is no limit: the first reduces
// inside, the second need not.
TEST(Mixture, TakesOnlySomeRacksApart) {
  Fabric f = even_fabric(12, 1000);
  f.racks = {{"narrow", 1000, 1000}, {"open", 0, 0}, {"open too", 0, 0}};
  for (int n = 0; n < 12; ++n) f.nodes[n].rack = n / 4;
  const FabricView view(f);
  const Mixture mixture = best_mixture(view);
  for (const MixtureSegment& s : mixture.segments) EXPECT_FALSE(s.apart[0]);
  EXPECT_LE(busiest_over_bound(f, lanes_of(view, mixture)), 1.01);
}

TEST(Mixture, ManyKindsOfRacksAreTooMany) {
  Fabric f;
  for (int r = 0; r <= static_cast<int>(kMaxRackKinds); ++r) {
    f.racks.push_back({"r", 0, 0});
    f.nodes.push_back({"n", 1000 + r, 1000 + r, r});
  }
  EXPECT_TRUE(best_mixture(FabricView(f)).segments.empty());
}

TEST(Mixture, LinksAreListedBusiestFirst) {
  Fabric f = even_fabric(8, 400'000);
  f.racks = {{"a", 200'000, 200'000}, {"b", 200'000, 200'000}};
  for (int n = 0; n < 8; ++n) f.nodes[n].rack = n % 2;
  const auto choice = plan(f, kBytes, {});
  ASSERT_TRUE(choice.is_ok());
  const auto times = link_times(f, choice->plans, kBytes);
  ASSERT_EQ(times.size(), 20u);
  EXPECT_EQ(times[0].link, "uplink of rack a");
  EXPECT_NEAR(times[0].time_us, choice->bound_us, 1);
  EXPECT_EQ(times[0].rate_kbps, 200'000);
  EXPECT_EQ(choice->reason.find("uplink of rack a"), 0u) << choice->reason;
}

}  // namespace
}  // namespace riffle::mixture_test
