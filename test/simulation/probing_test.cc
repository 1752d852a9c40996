// The production prober on simulated networks: how long connect's probing takes, what it sends, and
// that it finds the rates and the racks.
#include <gtest/gtest.h>

#include <cmath>

#include "lab/simulation/job.h"
#include "test/topology/probe_network.h"

namespace riffle::sim::probing_test {
namespace {

constexpr std::int64_t kRate = 400'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

JobOptions probing() {
  JobOptions options;
  options.probes = true;
  options.session.engine.max_chunks = 8;
  return options;
}

// Racks of `members` nodes each, whose uplinks carry a part of what their nodes do together;
// handed out in turn, so that neighbours by rank stand in different racks.
Fabric in_racks(int nodes, int members, int taper) {
  Fabric f = even_fabric(nodes, kRate);
  const int racks = nodes / members;
  f.racks.assign(racks, {"", kRate * members / taper, kRate * members / taper});
  for (int n = 0; n < nodes; ++n) f.nodes[n].rack = n % racks;
  return f;
}

Fabric one_slow(int nodes) {
  Fabric f = even_fabric(nodes, kRate);
  f.nodes[3].out_kbps = f.nodes[3].in_kbps = kRate / 4;
  return f;
}

// Every eighth at half rate, one at a tenth.
Fabric mixed(int nodes) {
  Fabric f = even_fabric(nodes, kRate);
  for (int n = 0; n < nodes; n += 8) f.nodes[n].out_kbps = f.nodes[n].in_kbps = kRate / 2;
  f.nodes[5].out_kbps = f.nodes[5].in_kbps = kRate / 10;
  return f;
}

// Share of the pairs of nodes of which it is known rightly whether they stand in one rack.
double right_pairs(const Fabric& fabric, const probe::Findings& found) {
  int right = 0, pairs = 0;
  for (int a = 0; a < fabric.size(); ++a) {
    for (int b = 0; b < a; ++b, ++pairs) {
      right += (fabric.nodes[a].rack == fabric.nodes[b].rack) ==
               (found.racks.rack_of[a] == found.racks.rack_of[b]);
    }
  }
  return static_cast<double>(right) / pairs;
}

double log2_of(int nodes) { return std::ceil(std::log2(nodes)); }

struct Limits {
  std::uint64_t seconds;
  double right_pairs = 1;  // of nodes, as to whether they stand in one rack
};

void expect_found(Job& job, const Fabric& fabric, const Limits& limits) {
  const Status connected = job.connect();
  ASSERT_TRUE(connected) << connected.message();
  const ProbeOutcome& outcome = job.probed();
  const double n = fabric.size();
  std::printf(
      "%d nodes in %zu racks: %.2f s, %d rounds, %.0f MB and %.2f MB of messages, %llu pairs; "
      "worst rate %.1f %%, %d racks, %.1f %% of pairs right\n",
      fabric.size(), fabric.racks.size(), static_cast<double>(outcome.time_ns) / 1e9,
      outcome.findings.rounds, static_cast<double>(job.traffic().flow_bytes) / 1e6,
      static_cast<double>(job.traffic().message_bytes) / 1e6,
      static_cast<unsigned long long>(job.traffic().pairs),
      100 * worst_rate_error(fabric, outcome.findings), outcome.findings.racks.count,
      100 * right_pairs(fabric, outcome.findings));
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_LE(outcome.time_ns, limits.seconds * kSecond);
  EXPECT_LE(worst_rate_error(fabric, outcome.findings), 0.10);
  EXPECT_GE(right_pairs(fabric, outcome.findings), limits.right_pairs)
      << outcome.findings.racks.count << " racks";
  EXPECT_EQ(outcome.bytes, job.traffic().flow_bytes);
  if (fabric.size() <= 64) {
    EXPECT_EQ(job.traffic().pairs, n * (n - 1));
  } else {
    // Five rounds per doubling of the nodes, and a fixed number; a flow sends for 50 ms and what
    // may then be under way.
    const double rounds = 5 * log2_of(fabric.size()) + 12;
    EXPECT_LE(job.traffic().pairs, n * rounds);
    EXPECT_LT(job.traffic().pairs, n * (n - 1) / 4);
    EXPECT_LE(static_cast<double>(job.traffic().flow_bytes), n * rounds * kRate / 8e3 * 65e3);
    // An order names a flow, and a report what became of it, on the way to or from both its ends.
    EXPECT_LE(static_cast<double>(job.traffic().message_bytes),
              rounds * n * (2 * kFrameHeaderBytes + 2 * (8 + 48) * log2_of(fabric.size())));
  }
}

TEST(Probing, EightNodesTakeTwoSeconds) {
  for (const Fabric& fabric : {even_fabric(8, kRate), one_slow(8), in_racks(8, 4, 2)}) {
    Job job(fabric, probing());
    expect_found(job, fabric, {.seconds = 2});
  }
}

TEST(Probing, SixtyFourNodesTakeTenSeconds) {
  for (const Fabric& fabric : {mixed(64), in_racks(64, 8, 4)}) {
    Job job(fabric, probing());
    expect_found(job, fabric, {.seconds = 10});
  }
}

TEST(Probing, BeyondSixtyFourNodesNeverAllPairs) {
  for (const Fabric& fabric : {mixed(256), in_racks(256, 32, 4)}) {
    Job job(fabric, probing());
    expect_found(job, fabric, {.seconds = 10, .right_pairs = 0.95});
  }
}

// Racks that are known from a file need not be found; their uplinks are measured.
TEST(Probing, KnownRacksAreMeasured) {
  const Fabric fabric = in_racks(16, 4, 4);
  JobOptions options = probing();
  for (const NodeLink& node : fabric.nodes) options.racks.push_back(node.rack);
  Job job(fabric, options);
  expect_found(job, fabric, {.seconds = 3});
  for (const probe::Uplink& uplink : job.probed().findings.racks.uplinks) {
    EXPECT_NEAR(uplink.up_kbps, kRate, 0.1 * kRate);
  }
}

// The plan on what probing found is about as good as the one on the true rates.
TEST(Probing, ThePlanIsAsGoodAsWithAFile) {
  constexpr std::uint64_t kBytes = 32 << 20;
  for (const Fabric& fabric : {one_slow(8), in_racks(8, 4, 2)}) {
    double x_bound[2] = {0, 0};
    for (const bool probes : {false, true}) {
      JobOptions options = probing();
      options.probes = probes;
      options.session.engine.max_chunks = 64;
      Job job(fabric, options);
      ASSERT_TRUE(job.connect());
      const Result<double> time_us = job.all_reduce_us(kBytes);
      ASSERT_TRUE(time_us) << time_us.status().message();
      x_bound[probes] = *time_us / bound_us(fabric, kBytes);
    }
    std::printf("x bound %.3f with a file, %.3f probed\n", x_bound[0], x_bound[1]);
    EXPECT_LE(x_bound[1], x_bound[0] + 0.05);
  }
}

// Probing has opened all links, so those who hear the verdict first say goodbye to all others while
// it still is on its way down the tree.
TEST(Probing, SteppingAsideAfterItIsNobodysError) {
  for (const int nodes : {2, 5, 16, 40}) {
    JobOptions options = probing();
    options.fallback_reason = "the ring wins";
    options.network.jitter_ns = 200'000;
    Job job(even_fabric(nodes, kRate), options);
    const Status outcome = job.connect();
    EXPECT_TRUE(outcome) << nodes << " nodes: " << outcome.message();
  }
}

}  // namespace
}  // namespace riffle::sim::probing_test
