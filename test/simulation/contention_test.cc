// Replanning in virtual time: the production sessions follow a network that changes in mid-job.
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/simulation/job.h"

namespace riffle::sim::contention_test {
namespace {

constexpr std::int64_t kRate = 400'000;
constexpr std::uint64_t kBytes = 32 << 20;
constexpr int kPhase = 40;    // all-reduces
constexpr int kSettled = 20;  // of them that the plan has to follow

JobOptions with_intervals() {
  JobOptions options;
  options.network.tick_ns = 20'000;
  options.session.replan.collectives = 4;
  return options;
}

// Time over the bound of the network as it is, one all-reduce after the other.
std::vector<double> x_bounds(Job& job, const Fabric& now, int collectives) {
  std::vector<double> x;
  for (int i = 0; i < collectives; ++i) {
    const Result<double> time_us = job.all_reduce_us(kBytes);
    EXPECT_TRUE(time_us) << time_us.status().message();
    if (!time_us) break;
    x.push_back(*time_us / bound_us(now, kBytes));
  }
  return x;
}

double worst_settled(const std::vector<double>& x) {
  return *std::max_element(x.begin() + kSettled, x.end());
}

void print(const char* what, const std::vector<double>& x) {
  std::printf("%-16s", what);
  for (const double v : x) std::printf(" %.2f", v);
  std::printf("\n");
}

// Three quarters of one node's link are gone, both ways.
Fabric with_slow(Fabric fabric, int node) {
  NodeLink& link = fabric.nodes[static_cast<std::size_t>(node)];
  link.out_kbps = link.in_kbps = kRate / 4;
  return fabric;
}

int changes(const Job& job) {
  int count = 0;
  for (const ReplanEvent& e : job.events()) count += e.kind == ReplanEvent::Kind::kPlanChange;
  return count;
}

// A foreign flow takes 3/4 of one node's link, both ways, and leaves again.
TEST(Contention, ThePlanFollowsAForeignFlowThatComesAndGoes) {
  const Fabric calm = even_fabric(8, kRate);
  const Fabric contended = with_slow(calm, 3);
  Job job(calm, with_intervals());
  ASSERT_TRUE(job.connect());
  const std::vector<double> before = x_bounds(job, calm, kPhase / 2);
  print("before", before);
  EXPECT_EQ(changes(job), 0);
  job.network().set_node_rate(3, kRate / 4, kRate / 4);
  const std::vector<double> during = x_bounds(job, contended, kPhase);
  print("with the flow", during);
  job.network().set_node_rate(3, kRate, kRate);
  const std::vector<double> after = x_bounds(job, calm, kPhase);
  print("after it", after);
  ASSERT_EQ(after.size(), static_cast<std::size_t>(kPhase));
  EXPECT_LE(*std::max_element(before.begin(), before.end()), 1.05);
  EXPECT_LE(worst_settled(during), 1.2);
  EXPECT_LE(worst_settled(after), 1.15);
  EXPECT_GE(changes(job), 2);
  EXPECT_LE(changes(job), 4);
}

// An uplink loses three quarters of its rate and gets them back. At first nothing but a ring's two
// nodes cross it.
TEST(Contention, ThePlanFollowsAnUplink) {
  Fabric calm = even_fabric(8, kRate);
  calm.racks = {{"a", 2 * kRate, 2 * kRate}, {"b", 2 * kRate, 2 * kRate}};
  for (int n = 0; n < 8; ++n) calm.nodes[n].rack = n % 2;
  Fabric contended = calm;
  contended.racks[0].up_kbps = contended.racks[0].down_kbps = kRate / 2;
  Job job(calm, with_intervals());
  ASSERT_TRUE(job.connect());
  print("before", x_bounds(job, calm, kPhase / 2));
  job.network().set_rack_rate(0, kRate / 2, kRate / 2);
  const std::vector<double> during = x_bounds(job, contended, kPhase);
  print("with the flow", during);
  job.network().set_rack_rate(0, 2 * kRate, 2 * kRate);
  const std::vector<double> after = x_bounds(job, calm, kPhase);
  print("after it", after);
  EXPECT_LE(worst_settled(during), 1.2);
  EXPECT_LE(worst_settled(after), 1.15);
}

// The first intervals look at the pairs of the direct plan, and must not take the node for a rack.
TEST(Contention, ANodeThatIsSlowFromTheStartIsNoRack) {
  const Fabric calm = even_fabric(8, kRate);
  const Fabric contended = with_slow(calm, 3);
  Job job(calm, with_intervals());
  ASSERT_TRUE(job.connect());
  job.network().set_node_rate(3, kRate / 4, kRate / 4);
  const std::vector<double> during = x_bounds(job, contended, kPhase);
  print("with the flow", during);
  EXPECT_LE(worst_settled(during), 1.2);
  for (const ReplanEvent& e : job.events()) {
    EXPECT_EQ(e.cause.find("model of the network"), std::string::npos) << e.cause;
  }
}

// A node in one of two racks of uneven size, whose plan weighs links (Mesh::set_peer_weights),
// loses three quarters of its rate and gets them back. The ring it begins with cannot tell which
// end of a link is slow: its neighbours are suspected as well, and cleared one after the other.
TEST(Contention, ThePlanFollowsANodeInRacksOfUnevenSize) {
  Fabric calm = even_fabric(8, kRate);
  calm.racks = {{"a", kRate, kRate}, {"b", kRate, kRate}};
  for (int n = 0; n < 8; ++n) calm.nodes[n].rack = n < 5 ? 0 : 1;
  for (const int node : {1, 6}) {
    const Fabric contended = with_slow(calm, node);
    Job job(calm, with_intervals());
    ASSERT_TRUE(job.connect());
    const std::vector<double> before = x_bounds(job, calm, kPhase / 2);
    print("before", before);
    job.network().set_node_rate(node, kRate / 4, kRate / 4);
    const std::vector<double> during = x_bounds(job, contended, kPhase);
    print("with the flow", during);
    job.network().set_node_rate(node, kRate, kRate);
    const std::vector<double> after = x_bounds(job, calm, kPhase);
    print("after it", after);
    EXPECT_LE(*std::max_element(before.begin(), before.end()), 1.05);
    EXPECT_LE(worst_settled(during), 1.2);
    EXPECT_LE(worst_settled(after), 1.3);
    EXPECT_LE(after.back(), 1.15);
  }
}

// Latencies that vary, lost packets and work per frame are no reason to change a plan.
TEST(Contention, NoiseChangesNothing) {
  Fabric fabric = even_fabric(8, kRate);
  fabric.nodes[2].out_kbps = fabric.nodes[2].in_kbps = kRate / 2;
  JobOptions options = with_intervals();
  options.network.jitter_ns = 300'000;
  options.network.loss_per_frame = 0.001;
  options.network.retransmit_ns = 20'000'000;
  options.network.frame_cpu_ns = 5'000;
  Job job(fabric, options);
  ASSERT_TRUE(job.connect());
  print("noise", x_bounds(job, fabric, kPhase));
  EXPECT_GE(job.events().size(), 8u);
  EXPECT_EQ(changes(job), 0);
}

}  // namespace
}  // namespace riffle::sim::contention_test
