// Networks that are drawn, as probing found them: what the job's own traffic corrects in 20
// all-reduces of production sessions in virtual time. What probing itself finds is
// random_networks_test.cc's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "lab/simulation/job.h"
#include "test/topology/drawn_network.h"
#include "topology/probe/live_fabric.h"

namespace riffle::sim::found_networks_test {
namespace {

constexpr std::uint64_t kBytes = 8 << 20;
constexpr int kWarmUp = 20, kMeasured = 5;

// By hand: RIFFLE_TEST_RUNS=1000 for more of them, RIFFLE_TEST_FIRST=971 to begin with another one.
int number(const char* variable, int least, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::max(least, std::atoi(text)) : otherwise;
}
int runs() { return number("RIFFLE_TEST_RUNS", 1, 40); }

Fabric found_in(const Fabric& truth, std::uint64_t seed) {
  constexpr int kNoHeaders = 1 << 24;  // a simulated network's rates are those of payload
  ProbeNetwork network(truth, kUnevenTcp, seed);
  std::vector<std::string> names;
  for (const NodeLink& n : truth.nodes) names.push_back(n.name);
  const Result<Fabric> found =
      probe::to_fabric(survey(network, truth.size(), 1), names, kNoHeaders);
  EXPECT_TRUE(found) << found.status().message();
  return *found;
}

// The median after the warm-up. `only`: a plan that is forced; empty: the planner's.
double settled_us(const Fabric& truth, const Fabric& told, bool is_probed, const char* only = "") {
  JobOptions options;
  options.network.tick_ns = 50'000;
  options.session.replan.collectives = 4;
  options.session.replan.plan.only = only;
  options.told = told;
  options.has_seen_pairs = is_probed;
  Job job(truth, options);
  EXPECT_TRUE(job.connect());
  std::vector<double> us;
  for (int i = 0; i < kWarmUp + kMeasured; ++i) {
    const Result<double> took = job.all_reduce_us(kBytes);
    EXPECT_TRUE(took) << took.status().message();
    if (took && i >= kWarmUp) us.push_back(*took);
  }
  std::sort(us.begin(), us.end());
  return us.at(us.size() / 2);
}

TEST(FoundNetworks, AreCorrectedByTheTrafficOfTheJob) {
  int as_good = 0, beaten = 0, beyond = 0;
  double worst = 0, worst_beside = 0;
  const int first = number("RIFFLE_TEST_FIRST", 0, 0);
  for (int i = first; i < first + runs(); ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    const int nodes = 4 + static_cast<int>(random() % 11);
    const Fabric truth = drawn_network(random, nodes);
    const double live_us = settled_us(truth, found_in(truth, random()), true);
    const double over_told = live_us / settled_us(truth, truth, false);
    double simple_us = live_us;
    for (const char* only : {"ring", "tree", "direct"}) {
      simple_us = std::min(simple_us, settled_us(truth, truth, false, only));
    }
    as_good += over_told <= 1.10;
    beyond += over_told > 1.25;
    beaten += live_us > 1.05 * simple_us;
    worst = std::max(worst, over_told);
    worst_beside = std::max(worst_beside, live_us / simple_us);
    if (over_told > 1.10 || live_us > 1.05 * simple_us) {
      std::printf(
          "network %d of %d nodes: %.3f times as long as told, %.3f as the best simple plan\n", i,
          nodes, over_told, live_us / simple_us);
    }
  }
  std::printf("%d networks: within 1.10 %d, over 1.25 %d, worst %.3f; beaten %d, by %.3f at most\n",
              runs(), as_good, beyond, worst, beaten, worst_beside);
  EXPECT_GE(as_good, runs() * 95 / 100);
  EXPECT_LE(beyond, runs() / 500);
  EXPECT_LE(beaten, runs() / 40);
}

}  // namespace
}  // namespace riffle::sim::found_networks_test
