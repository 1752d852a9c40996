// The agreement on how much of a call is valid (lengths.h): what it costs, what it saves, and what
// nodes in the dark do. Engines on an in-memory network that reorders every frame; random calls and
// plans are engine_test's.
#include "plugin/collective/engine/lengths.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "test/plugin/collective/engine/engine_harness.h"
#include "topology/plan/planner.h"

namespace riffle::lengths_test {
namespace {

using testing::EngineCluster;

constexpr int kNodes = 8;
constexpr std::uint64_t kPosted = 8192;  // floats: NCCL's smallest chunk
constexpr float kStale = std::numeric_limits<float>::quiet_NaN();

PlanSet plans_of(const std::string& kind) {
  PlanOptions options;
  options.only = kind;
  const Result<PlanChoice> choice = plan(even_fabric(kNodes, 1'000'000), 1 << 20, options);
  return choice ? choice->plans : PlanSet();
}

// One call: node r's element e is r + e, behind `valid` of them all is stale.
struct Call {
  explicit Call(std::uint64_t valid) : valid(valid) {
    for (int r = 0; r < kNodes; ++r) {
      send.emplace_back(kPosted, kStale);
      recv.emplace_back(kPosted, -1.0F);
      for (std::uint64_t e = 0; e < valid; ++e) send[r][e] = static_cast<float>(r) + 0.37F * e;
      operations[r].count = kPosted;
      operations[r].valid = valid;
      operations[r].send = reinterpret_cast<const std::byte*>(send[r].data());
      operations[r].recv = reinterpret_cast<std::byte*>(recv[r].data());
      operations[r].state = Operation::State::kRunning;
    }
  }
  void forget(int node) { operations[node].valid = Operation::kUnknown; }

  std::uint64_t valid;
  std::vector<std::vector<float>> send, recv;
  Operation operations[kNodes];
};

// Empty if it ended well.
std::string run_on(EngineCluster& cluster, Call& call) {
  for (int r = 0; r < kNodes; ++r) cluster.nodes[r]->engine.submit(&call.operations[r]);
  while (cluster.network.step()) {
  }
  if (std::string e = cluster.error(); !e.empty()) return e;
  for (int r = 0; r < kNodes; ++r) {
    if (call.operations[r].state != Operation::State::kDone) return "a call never ended";
    for (std::uint64_t e = 0; e < call.valid; ++e) {
      const float sum = kNodes * 0.37F * e + kNodes * (kNodes - 1) / 2;
      if (std::abs(call.recv[r][e] - sum) > 1e-5F * sum) return "a wrong sum";
    }
  }
  return "";
}

bool is_left_alone(const Call& call) {
  for (const auto& recv : call.recv) {
    for (std::uint64_t e = call.valid; e < kPosted; ++e) {
      if (recv[e] != -1.0F) return false;
    }
  }
  return true;
}

class LengthsTest : public ::testing::Test {
 protected:
  explicit LengthsTest(const std::string& kind = "direct")
      : cluster_(plans_of(kind), EngineOptions(), 7) {
    for (const auto& node : cluster_.nodes) node->engine.use_lengths(true);
  }
  std::string run(Call& call) { return run_on(cluster_, call); }
  std::uint64_t asked() const {
    std::uint64_t sum = 0;
    for (const auto& node : cluster_.nodes) sum += node->engine.lengths_asked();
    return sum;
  }

  EngineCluster cluster_;
};

TEST_F(LengthsTest, FewBytesWhereAllKnowAndNoMessageMore) {
  Call call(2);
  ASSERT_EQ(run(call), "");
  EXPECT_TRUE(is_left_alone(call));
  EXPECT_EQ(asked(), 0);
  // One owner: a partial sum from each of the others, and the result back.
  EXPECT_EQ(cluster_.network.payload_bytes(), 2 * (kNodes - 1) * 2 * sizeof(float));
  EXPECT_LE(cluster_.network.frames_delivered(), 2 * (kNodes - 1));
  Call few(1000);
  const std::uint64_t before = cluster_.network.frames_delivered();
  ASSERT_EQ(run(few), "");
  EXPECT_LE(cluster_.network.frames_delivered() - before, 3 * (kNodes - 1));  // credits, too
}

TEST_F(LengthsTest, NodesInTheDarkTakeWhatOthersKnow) {
  for (int in_the_dark = 1; in_the_dark < kNodes; ++in_the_dark) {
    Call call(300);
    for (int r = 0; r < in_the_dark; ++r) call.forget((3 * r) % kNodes);
    const std::uint64_t before = asked();
    ASSERT_EQ(run(call), "") << in_the_dark;
    EXPECT_TRUE(is_left_alone(call)) << in_the_dark;
    EXPECT_EQ(asked() - before, in_the_dark);
  }
}

TEST_F(LengthsTest, WhatNobodyKnowsRunsInFullAndIsSoonNotAskedAbout) {
  constexpr int kRounds = 200;
  std::uint64_t before = 0;
  for (int i = 0; i < kRounds; ++i) {
    Call call(kPosted / 2);
    for (int r = 0; r < kNodes; ++r) call.forget(r);
    ASSERT_EQ(run(call), "") << i;
    ASSERT_FALSE(is_left_alone(call)) << i;
    if (i == Lengths::kPatience - 1) before = asked();
  }
  EXPECT_EQ(before, Lengths::kPatience * kNodes);
  // Again after 64 calls, then after 128.
  EXPECT_EQ(asked() - before, kNodes);
  // What is known meanwhile counts again when the pause is over.
  for (int i = 0; i < 2; ++i) {
    for (std::uint64_t k = 0; k < Lengths::kShortestPause; ++k) {
      Call call(5);
      ASSERT_EQ(run(call), "");
      ASSERT_TRUE(i == 0 || is_left_alone(call)) << k;
    }
  }
}

TEST_F(LengthsTest, NodesThatDifferEndInAnErrorThatSaysSo) {
  Call call(5);
  call.operations[3].valid = 6;
  const std::string e = run(call);
  EXPECT_NE(e.find("all nodes must call the same collectives"), std::string::npos) << e;
}

TEST_F(LengthsTest, AnswersThatDifferEndInAnErrorThatSaysSo) {
  Call call(5);
  call.forget(0);
  call.operations[3].valid = 6;
  const std::string e = run(call);
  EXPECT_NE(e.find("all nodes must call the same collectives"), std::string::npos) << e;
}

// Small chunks have few shards: limits rounded to 4 KiB, where a plan may mean to give a slow node
// less. Any length must fit the slots that the plan's full chunks have.
TEST(LengthsOnUnevenNetworks, EveryLengthFits) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 40; ++i) {
    Fabric fabric = even_fabric(kNodes, 1'000'000);
    for (NodeLink& node : fabric.nodes) {
      node.out_kbps = node.in_kbps = 1'000'000 >> random() % 8;
    }
    PlanOptions options;
    options.only = i % 2 == 0 ? "direct" : "grid";
    const Result<PlanChoice> choice = plan(fabric, 32 << 20, options);
    ASSERT_TRUE(choice) << choice.status().message();
    EngineCluster cluster(choice->plans, EngineOptions(), random());
    for (const auto& node : cluster.nodes) node->engine.use_lengths(true);
    for (int k = 0; k < 10; ++k) {
      Call call(1 + random() % kPosted);
      ASSERT_EQ(run_on(cluster, call), "") << i << " " << k << ": " << call.valid;
      EXPECT_TRUE(is_left_alone(call));
    }
  }
}

// The owner of an element in a ring is where its sum ends, so moving less must not move owners.
class RingLengthsTest : public LengthsTest {
 protected:
  RingLengthsTest() : LengthsTest("ring") {}
};

TEST_F(RingLengthsTest, TheBitsOfAValidElementDoNotDependOnWhatIsKnown) {
  constexpr std::uint64_t kValid = 3000;
  Call known(kValid), unknown(kValid);
  for (int r = 0; r < kNodes; ++r) unknown.forget(r);
  ASSERT_EQ(run(known), "");
  ASSERT_EQ(run(unknown), "");
  EXPECT_TRUE(is_left_alone(known));
  for (int r = 0; r < kNodes; ++r) {
    EXPECT_EQ(std::memcmp(known.recv[r].data(), unknown.recv[r].data(), kValid * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace riffle::lengths_test
