// The engine over an in-memory network that reorders every frame: exactness for all collectives,
// types, operators, random plans, sizes and interleavings, with and without changes of the plan in
// mid-flight. RIFFLE_TEST_SEED=n repeats one case.
#include "plugin/collective/engine/engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "test/plugin/collective/engine/engine_case.h"
#include "test/sanitized.h"

namespace riffle::engine_test {
namespace {

using testing::EngineCase;
using testing::EngineCluster;

// Ten thousand cases in ten parts, so that they can run in parallel; fewer where every one is slow.
constexpr std::uint64_t kCasesPerPart = cases(1000) / (kIsSanitized ? 2 : 1);
class EngineRandom : public ::testing::TestWithParam<int> {};

TEST_P(EngineRandom, SumsExactly) {
  if (const char* one = std::getenv("RIFFLE_TEST_SEED")) {
    ASSERT_EQ(EngineCase(std::strtoull(one, nullptr, 10)).run(), "");
    return;
  }
  for (std::uint64_t i = 0; i < kCasesPerPart; ++i) {
    const std::uint64_t seed = GetParam() * kCasesPerPart + i;
    ASSERT_EQ(EngineCase(seed).run(), "") << "repeat with RIFFLE_TEST_SEED=" << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, EngineRandom, ::testing::Range(0, 10));

class EngineSwitch : public ::testing::TestWithParam<int> {};

TEST_P(EngineSwitch, PlansChangeWhileChunksAreInFlight) {
  if (const char* one = std::getenv("RIFFLE_TEST_SEED")) {
    ASSERT_EQ(EngineCase(std::strtoull(one, nullptr, 10), 4).run(), "");
    return;
  }
  for (std::uint64_t i = 0; i < kCasesPerPart / 4; ++i) {
    const std::uint64_t seed = 1'000'000 + GetParam() * kCasesPerPart + i;
    ASSERT_EQ(EngineCase(seed, 4).run(), "") << "repeat with RIFFLE_TEST_SEED=" << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, EngineSwitch, ::testing::Range(0, 4));

class EngineLengths : public ::testing::TestWithParam<int> {};

TEST_P(EngineLengths, OnlyValidElementsAreMoved) {
  if (const char* one = std::getenv("RIFFLE_TEST_SEED")) {
    ASSERT_EQ(EngineCase(std::strtoull(one, nullptr, 10), 2, true).run(), "");
    return;
  }
  for (std::uint64_t i = 0; i < kCasesPerPart / 8; ++i) {
    const std::uint64_t seed = 2'000'000 + GetParam() * kCasesPerPart + i;
    ASSERT_EQ(EngineCase(seed, 2, true).run(), "") << "repeat with RIFFLE_TEST_SEED=" << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, EngineLengths, ::testing::Range(0, 4));

class EngineThreads : public ::testing::TestWithParam<int> {};

TEST_P(EngineThreads, ShareTheChunksWhilePlansChange) {
  if (const char* one = std::getenv("RIFFLE_TEST_SEED")) {
    ASSERT_EQ(EngineCase(std::strtoull(one, nullptr, 10), 4, false, GetParam()).run(), "");
    return;
  }
  std::uint64_t further_frames = 0;
  for (std::uint64_t i = 0; i < kCasesPerPart / 2; ++i) {
    const std::uint64_t seed = 3'000'000 + GetParam() * kCasesPerPart + i;
    EngineCase one(seed, i % 2 == 0 ? 4 : 0, false, GetParam());
    ASSERT_EQ(one.run(), "") << "repeat with RIFFLE_TEST_SEED=" << seed;
    further_frames += one.further_frames();
  }
  EXPECT_GT(further_frames, 10 * kCasesPerPart);
}
INSTANTIATE_TEST_SUITE_P(Counts, EngineThreads, ::testing::Values(2, 3, 4));

// How many chunks of a call begin before a frame has arrived.
std::uint64_t chunks_begun(const PlanSet& plans, const EngineOptions& options, std::size_t bytes,
                           int threads = 1) {
  EngineCluster cluster(plans, options, 1, threads);
  const auto nodes = static_cast<std::size_t>(plans.lanes[0].nodes);
  std::vector<std::byte> data(nodes * bytes);
  std::vector<Operation> operations(nodes);
  for (std::size_t r = 0; r < nodes; ++r) {
    Operation& o = operations[r];
    o.type = DataType::kUint8;
    o.count = bytes;
    o.recv = data.data() + r * bytes;
    o.send = o.recv;
    o.state = Operation::State::kRunning;
    cluster.nodes[r]->engine.submit(&o);
  }
  const std::uint64_t begun = cluster.nodes[0]->engine.next_seq();
  while (cluster.step()) {
  }
  EXPECT_EQ(cluster.error(), "");
  for (const Operation& o : operations) EXPECT_EQ(o.state, Operation::State::kDone);
  return begun;
}

constexpr Share kHalf = kShareUnits / 2;
GroupPlan one_level() { return {2, {{{{Pattern::kDirect, {0, 1}, {0, kHalf, kShareUnits}}}}}}; }
GroupPlan two_levels() {
  const Level below = {{{Pattern::kDirect, {0, 1}, {0, kHalf, kShareUnits}},
                        {Pattern::kDirect, {2, 3}, {0, kHalf, kShareUnits}}}};
  const Level above = {{{Pattern::kDirect, {0, 2}, {0, kHalf / 2, kHalf}},
                        {Pattern::kDirect, {1, 3}, {kHalf, kHalf + kHalf / 2, kShareUnits}}}};
  return {4, {below, above}};
}

TEST(EngineWindow, HoldsCallsOfAMiBBack) {
  const auto begun = [](std::uint32_t busy_bytes, std::size_t large_bytes,
                        std::size_t chunk_bytes = 1024, int threads = 1) {
    PlanSet plans{{one_level()}, "direct"};
    plans.busy_bytes = busy_bytes;
    EngineOptions options;
    options.chunk_bytes = chunk_bytes;
    options.large_bytes = large_bytes;
    return chunks_begun(plans, options, 16 * chunk_bytes, threads);
  };
  EXPECT_EQ(begun(0, 64), 16);
  EXPECT_EQ(begun(5000, 64), 4);
  EXPECT_EQ(begun(1 << 20, 64), 16);
  EXPECT_EQ(begun(1, 64), 2) << "one ends while another begins";
  EXPECT_EQ(begun(1, 16 * 1024), 16) << "small calls begin at once";
  EXPECT_EQ(begun(1, 64, 16 << 10), 16) << "large calls, too";
  EXPECT_EQ(begun(1, 64, 1024, 2), 2) << "one in each engine";
}

TEST(EngineWindow, CutsACallIntoAChunkPerLevel) {
  const auto begun = [](const GroupPlan& plan, std::uint32_t busy_bytes) {
    PlanSet plans{{plan}, "p"};
    plans.busy_bytes = busy_bytes;
    EngineOptions options;
    options.large_bytes = 64;
    return chunks_begun(plans, options, 12'345);
  };
  EXPECT_EQ(begun(one_level(), 1 << 19), 1);
  EXPECT_EQ(begun(two_levels(), 1 << 19), 2);
  EXPECT_EQ(begun(two_levels(), 0), 1) << "without a window whole";
}

}  // namespace
}  // namespace riffle::engine_test
