// plugin/collective/relaxed/rules/gradient_rules.h: narrow types, values that are not finite,
// results in place.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "test/plugin/collective/relaxed/rule_simulation.h"

namespace riffle::rules::gradient_numbers_test {
namespace {

// The job adds up rounded outputs. State follows them, so that nodes do not drift apart by
// rounding.
TEST(GradientRules, RoundingOfNarrowTypesIsAveragedAway) {
  constexpr int kNodes = 16;
  constexpr std::size_t kSize = 1030;  // more than a block, and no multiple
  const ScheduleTable table = grid({4, 4});
  for (const DataType type : {DataType::kBfloat16, DataType::kFloat16}) {
    std::mt19937_64 random(4);
    std::normal_distribution<float> normal;
    Vectors state(kNodes, std::vector<float>(kSize, 0)), z = state;
    Parameters job(kNodes, std::vector<double>(kSize, 0));
    std::vector<std::vector<std::byte>> g(kNodes), out(kNodes);
    const auto deviation = [&] {
      double sum = 0;
      for (std::size_t k = 0; k < kSize; ++k) {
        double mean = 0;
        for (const auto& of_node : job) mean += of_node[k] / kNodes;
        for (const auto& of_node : job) sum += (of_node[k] - mean) * (of_node[k] - mean);
      }
      return sum / (kNodes * kSize);
    };
    const auto step = [&](int t, bool is_full) {
      for (std::size_t n = 0; n < kNodes; ++n) {
        std::vector<float> gradient(kSize);
        for (float& x : gradient) x = normal(random);
        g[n] = narrowed(gradient, type);
        out[n].resize(g[n].size());
        ASSERT_TRUE(prepare(state[n].data(), g[n].data(), type, kSize, z[n].data()));
      }
      const NodeGroups groups =
          is_full ? all_nodes(kNodes) : groups_of(table, static_cast<std::uint64_t>(t));
      const Vectors sums = summed(z, groups);
      for (std::size_t n = 0; n < kNodes; ++n) {
        finish(sums[n].data(), size_in(groups, n), kNodes, kSize, is_full, state[n].data(), type,
               out[n].data());
        std::vector<float> got(kSize);
        widen(out[n].data(), type, kSize, got.data());
        for (std::size_t k = 0; k < kSize; ++k) job[n][k] += got[k] / kNodes;
      }
    };
    for (int t = 0; t < 600; ++t) step(t, false);
    EXPECT_NEAR(deviation() / 0.1875, 1, 0.05);
    for (std::size_t n = 0; n < kNodes; ++n) {
      for (std::size_t k = 0; k < kSize; ++k) ASSERT_NEAR(state[n][k], job[n][k], 2e-3);
    }
    // After a step over all nodes they differ by one rounding of its output.
    step(600, true);
    EXPECT_LT(deviation(), 1e-3 * 0.1875);
  }
}

TEST(GradientRules, NotFiniteInputIsSeenEverywhereInTheCall) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    for (const std::size_t size : {1u, 3u, 1024u, 1025u, 3000u}) {
      const std::vector<float> state(size, 1);
      std::vector<float> z(size), g(size, 2);
      EXPECT_TRUE(prepare(state.data(), narrowed(g, type).data(), type, size, z.data()));
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(z[i], 3);
      for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
        for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
          g[at] = bad;
          EXPECT_FALSE(prepare(state.data(), narrowed(g, type).data(), type, size, z.data()));
          g[at] = 2;
        }
      }
    }
    std::vector<std::byte> out(3000 * size_of(type));
    fill_not_finite(3000, type, out.data());
    std::vector<float> got(3000);
    widen(out.data(), type, 3000, got.data());
    for (float x : got) EXPECT_TRUE(std::isnan(x));
  }
  // A sum that is too large is not finite either.
  const std::vector<float> state(4, 3e38F), g(4, 3e38F);
  std::vector<float> z(4);
  EXPECT_FALSE(prepare(state.data(), bytes(g), DataType::kFloat32, 4, z.data()));
}

TEST(GradientRules, StatesStayNumbers) {
  const float huge = 3e38F;
  std::vector<float> state{1, 2, 3, 4}, sum{HUGE_VALF, std::nanf(""), 8, 8}, out(4);
  finish(sum.data(), 2, 2, 4, false, state.data(), DataType::kFloat32, bytes(out));
  EXPECT_EQ(state, (std::vector<float>{1, 2, 4, 4}));
  EXPECT_FALSE(std::isfinite(out[0]));
  state = {huge, 1, 1, 1};
  std::vector<float> g{huge, std::nanf(""), 2, HUGE_VALF};
  keep(bytes(g), 2, 4, state.data(), DataType::kFloat32, bytes(out));
  EXPECT_EQ(state, (std::vector<float>{huge, 1, 3, 1}));
  step_alone(bytes(g), nullptr, 2, 4, state.data(), DataType::kFloat32, bytes(out));
  EXPECT_EQ(state, (std::vector<float>{huge, 1, 5, 1}));
  // float16 cannot hold 2 * 40000: the job gets infinity and will skip the step.
  state = {0, 0};
  sum = {80000, 8};
  std::vector<std::byte> half(4);
  finish(sum.data(), 2, 2, 2, false, state.data(), DataType::kFloat16, half.data());
  EXPECT_EQ(state, (std::vector<float>{0, 4}));
}

TEST(GradientRules, InPlaceIsTheSame) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    constexpr std::size_t kSize = 2500;
    std::vector<float> g(kSize), state(kSize), own(kSize), job(kSize), sum(kSize), centre(kSize);
    for (auto* v : {&g, &state, &own, &job, &sum, &centre}) {
      for (float& x : *v) x = normal(random);
    }
    const std::vector<std::byte> input = narrowed(g, type);
    const auto expect_same = [&](auto&& rule) {
      std::vector<float> s1 = state, o1 = own, j1 = job, s2 = state, o2 = own, j2 = job;
      std::vector<std::byte> apart(input.size()), in_place = input;
      rule(input.data(), apart.data(), MomentumState{o1.data(), s1.data(), j1.data()});
      rule(in_place.data(), in_place.data(), MomentumState{o2.data(), s2.data(), j2.data()});
      EXPECT_EQ(apart, in_place);
      EXPECT_EQ(s1, s2);
      EXPECT_EQ(o1, o2);
      EXPECT_EQ(j1, j2);
    };
    expect_same([&](const std::byte* in, std::byte* out, const MomentumState& s) {
      keep(in, 8, kSize, s.state, type, out);
    });
    expect_same([&](const std::byte* in, std::byte* out, const MomentumState& s) {
      finish_momentum(sum.data(), 3, 8, in, kSize, 0.9F, true, s, type, out);
    });
    expect_same([&](const std::byte* in, std::byte* out, const MomentumState& s) {
      keep_momentum(in, 8, kSize, 0.9F, s, type, out);
    });
    expect_same([&](const std::byte* in, std::byte* out, const MomentumState& s) {
      step_alone(in, sum.data(), 8, kSize, s.state, type, out);
    });
    expect_same([&](const std::byte* in, std::byte* out, const MomentumState& s) {
      step_towards(in, centre.data(), 0.5F, 8, kSize, s.state, type, out);
    });
  }
}

// A node that keeps its own goes on as DS-Sync would with a group of one.
TEST(GradientRules, KeepingIsAGroupOfOne) {
  std::vector<float> g{0.5F, -2, 3}, own{1, 2, 3}, state{4, 5, 6}, job{-1, 0, 1}, out(3);
  std::vector<float> own2 = own, state2 = state, job2 = job, out2 = out, z(3);
  const MomentumState s{own.data(), state.data(), job.data()};
  const MomentumState s2{own2.data(), state2.data(), job2.data()};
  ASSERT_TRUE(prepare_momentum(s, bytes(g), DataType::kFloat32, 3, 0.5F, z.data()));
  finish_momentum(z.data(), 1, 4, bytes(g), 3, 0.5F, false, s, DataType::kFloat32, bytes(out));
  keep_momentum(bytes(g), 4, 3, 0.5F, s2, DataType::kFloat32, bytes(out2));
  EXPECT_EQ(own, own2);
  EXPECT_EQ(state, state2);
  EXPECT_EQ(job, job2);
  EXPECT_EQ(out, out2);
}

}  // namespace
}  // namespace riffle::rules::gradient_numbers_test
