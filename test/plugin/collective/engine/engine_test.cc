// The engine over an in-memory network that reorders every frame: exactness for all collectives,
// types, operators, random plans, sizes and interleavings, with and without changes of the plan in
// mid-flight. RIFFLE_TEST_SEED=n repeats one case.
#include "plugin/collective/engine/engine.h"

#include <gtest/gtest.h>

#include <array>
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

// How many of 16 chunks begin before a frame has arrived.
std::uint64_t chunks_begun(std::uint32_t busy_bytes, std::size_t large_bytes,
                           std::size_t chunk_bytes = 1024, int threads = 1) {
  const GroupPlan direct{2, {{{{Pattern::kDirect, {0, 1}, {0, kShareUnits / 2, kShareUnits}}}}}};
  PlanSet plans{{direct}, "direct"};
  plans.busy_bytes = busy_bytes;
  EngineOptions options;
  options.chunk_bytes = chunk_bytes;
  options.large_bytes = large_bytes;
  EngineCluster cluster(plans, options, 1, threads);
  std::vector<std::byte> data(2 * 16 * chunk_bytes);
  std::array<Operation, 2> operations;
  for (int r = 0; r < 2; ++r) {
    Operation& o = operations[r];
    o.type = DataType::kUint8;
    o.count = 16 * chunk_bytes;
    o.recv = data.data() + r * o.count;
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

TEST(EngineWindow, HoldsCallsOfAMiBBack) {
  EXPECT_EQ(chunks_begun(0, 64), 16);
  EXPECT_EQ(chunks_begun(5000, 64), 4);
  EXPECT_EQ(chunks_begun(1 << 20, 64), 16);
  EXPECT_EQ(chunks_begun(1, 64), 2) << "one ends while another begins";
  EXPECT_EQ(chunks_begun(1, 16 * 1024), 16) << "small calls begin at once";
  EXPECT_EQ(chunks_begun(1, 64, 16 << 10), 16) << "large calls, too";
  EXPECT_EQ(chunks_begun(1, 64, 1024, 2), 2) << "one in each engine";
}

}  // namespace
}  // namespace riffle::engine_test
