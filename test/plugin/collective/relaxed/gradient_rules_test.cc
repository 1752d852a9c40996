// plugin/collective/relaxed/rules/gradient_rules.h: sums within groups of nodes, against direct
// simulations of what each rule stands for.
#include "plugin/collective/relaxed/rules/gradient_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "test/plugin/collective/relaxed/rule_simulation.h"
#include "topology/plan/schedules/schedules.h"

namespace riffle::rules::gradient_rules_test {
namespace {

// The float64 simulation of parameter averaging and the job under float32 rules, side by side. The
// gradients are those at each one's own parameters.
struct Schedule {
  int steps = 5000;
  int full_every = 0;
  std::function<double(int)> rate = [](int) { return 0.05; };
};

double y_state_distance(const Schedule& schedule) {
  Problem problem(16, 40);
  const ScheduleTable table = grid({4, 4});
  const std::size_t nodes = problem.nodes(), size = problem.size();
  Parameters direct(nodes, std::vector<double>(size, 0)), job = direct;
  Vectors state(nodes, std::vector<float>(size, 0)), z = state, g = state, out = state;
  Distance distance;
  for (int t = 0; t < schedule.steps; ++t) {
    problem.draw();
    const double rate = schedule.rate(t);
    const bool is_full = schedule.full_every > 0 && t % schedule.full_every == 0;
    const NodeGroups groups =
        is_full ? all_nodes(16) : groups_of(table, static_cast<std::uint64_t>(t));
    for (std::size_t n = 0; n < nodes; ++n) {
      for (std::size_t k = 0; k < size; ++k) {
        direct[n][k] -= rate * problem.gradient(n, k, direct[n][k]);
        g[n][k] = static_cast<float>(problem.gradient(n, k, job[n][k]));
      }
      EXPECT_TRUE(prepare(state[n].data(), bytes(g[n]), DataType::kFloat32, size, z[n].data()));
    }
    average(direct, groups);
    const Vectors sums = summed(z, groups);
    for (std::size_t n = 0; n < nodes; ++n) {
      finish(sums[n].data(), size_in(groups, n), 16, size, is_full, state[n].data(),
             DataType::kFloat32, bytes(out[n]));
      for (std::size_t k = 0; k < size; ++k) {
        job[n][k] -= rate * (static_cast<double>(out[n][k]) / 16);
      }
    }
    distance.take(direct, job);
  }
  return distance.relative();
}

TEST(GradientRules, YStateIsParameterAveraging) {
  EXPECT_LE(y_state_distance({}), 1e-5);
  Schedule with_full;
  with_full.full_every = 64;
  EXPECT_LE(y_state_distance(with_full), 1e-5);
}

// A drop of the rate leaves an offset; none where a step over all nodes stands just before it
// (docs/policies.md).
TEST(GradientRules, AFullStepBeforeADropOfTheRateLeavesNoOffset) {
  Schedule drops;
  drops.steps = 2000;
  drops.rate = [](int t) { return t < 1000 ? 0.1 : 0.01; };
  EXPECT_GE(y_state_distance(drops), 1e-3);
  drops.full_every = 27;  // 999 is the last step at the former rate
  EXPECT_LE(y_state_distance(drops), 1e-5);
}

double momentum_distance(const Schedule& schedule, float mu) {
  Problem problem(16, 40);
  const ScheduleTable table = grid({4, 4});
  const std::size_t nodes = problem.nodes(), size = problem.size();
  Parameters direct(nodes, std::vector<double>(size, 0));
  Parameters job = direct, own_direct = direct, velocity = direct;
  Vectors own(nodes, std::vector<float>(size, 0)), state = own, held = own, z = own, g = own,
                                                   out = own;
  Distance distance;
  for (int t = 0; t < schedule.steps; ++t) {
    problem.draw();
    const double rate = schedule.rate(t);
    const bool is_full = schedule.full_every > 0 && t % schedule.full_every == 0;
    const NodeGroups groups =
        is_full ? all_nodes(16) : groups_of(table, static_cast<std::uint64_t>(t));
    for (std::size_t n = 0; n < nodes; ++n) {
      for (std::size_t k = 0; k < size; ++k) {
        own_direct[n][k] = mu * own_direct[n][k] + problem.gradient(n, k, direct[n][k]);
        direct[n][k] -= rate * own_direct[n][k];
        g[n][k] = static_cast<float>(problem.gradient(n, k, job[n][k]));
      }
      EXPECT_TRUE(prepare_momentum({own[n].data(), state[n].data(), held[n].data()}, bytes(g[n]),
                                   DataType::kFloat32, size, mu, z[n].data()));
    }
    average(direct, groups);
    const Vectors sums = summed(z, groups);
    for (std::size_t n = 0; n < nodes; ++n) {
      finish_momentum(sums[n].data(), size_in(groups, n), 16, bytes(g[n]), size, mu, is_full,
                      {own[n].data(), state[n].data(), held[n].data()}, DataType::kFloat32,
                      bytes(out[n]));
      for (std::size_t k = 0; k < size; ++k) {
        velocity[n][k] = mu * velocity[n][k] + static_cast<double>(out[n][k]) / 16;
        job[n][k] -= rate * velocity[n][k];
      }
    }
    distance.take(direct, job);
  }
  return distance.relative();
}

TEST(GradientRules, MomentumHintIsDsSyncsLocalMomentum) {
  Schedule schedule;
  schedule.rate = [](int) { return 0.02; };
  EXPECT_LE(momentum_distance(schedule, 0.9F), 1e-5);
  schedule.steps = 2000;
  schedule.full_every = 100;
  EXPECT_LE(momentum_distance(schedule, 0.9F), 1e-5);
  EXPECT_LE(momentum_distance(schedule, 0), 1e-5);
}

// Elements without curvature, unit noise: E|y_i - mean|^2 as the formulas have it.
TEST(GradientRules, DeviationIsThatOfTheFormula) {
  constexpr std::size_t kSize = 2000;
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal;
  for (const auto& shape : {std::vector{4, 4}, std::vector{2, 2, 2, 2}}) {
    const ScheduleTable table = grid(shape);
    Vectors state(16, std::vector<float>(kSize, 0)), z = state, g = state, out = state;
    double sum = 0, squares = 0;
    int counted = 0;
    for (int t = 0; t < 64; ++t) {
      for (std::size_t n = 0; n < 16; ++n) {
        for (float& x : g[n]) x = normal(random);
        ASSERT_TRUE(prepare(state[n].data(), bytes(g[n]), DataType::kFloat32, kSize, z[n].data()));
      }
      const NodeGroups groups = groups_of(table, static_cast<std::uint64_t>(t));
      const Vectors sums = summed(z, groups);
      for (std::size_t n = 0; n < 16; ++n) {
        finish(sums[n].data(), size_in(groups, n), 16, kSize, false, state[n].data(),
               DataType::kFloat32, bytes(out[n]));
      }
      if (t < 8) continue;
      for (std::size_t k = 0; k < kSize; ++k) {
        double mean = 0;
        for (std::size_t n = 0; n < 16; ++n) mean += state[n][k] / 16.0;
        for (std::size_t n = 0; n < 16; ++n) {
          sum += (state[n][k] - mean) * (state[n][k] - mean);
          squares += out[n][k] / 16.0 * out[n][k] / 16.0;
          ++counted;
        }
      }
    }
    EXPECT_NEAR(sum / counted / grid_deviation(shape), 1, 0.05);
    // What the optimizer sees is noisier than the exact mean: 2 / M - 1 / N instead of 1 / N.
    EXPECT_NEAR(squares / counted, 2.0 / shape[0] - 1.0 / 16, 0.02);
  }
}

TEST(GradientRules, GroupsConserveTheSum) {
  std::mt19937_64 random(9);
  std::normal_distribution<float> normal;
  for (const int nodes : {3, 8, 12, 17}) {
    const Fabric f = even_fabric(nodes, 1000);
    const auto choice = choose_schedule(f, ScheduleMode::kDsSync, {});
    ASSERT_TRUE(choice);
    const auto count = static_cast<std::size_t>(nodes);
    Vectors state(count, std::vector<float>(257, 0)), z = state, g = state, out = state;
    for (int t = 0; t < 300; ++t) {
      const bool is_full = t % 50 == 49;
      for (std::size_t n = 0; n < count; ++n) {
        for (float& x : g[n]) x = normal(random) + 0.5F;
        ASSERT_TRUE(prepare(state[n].data(), bytes(g[n]), DataType::kFloat32, 257, z[n].data()));
      }
      const Vectors before = state;
      const NodeGroups groups =
          is_full ? all_nodes(nodes) : groups_of(choice->table, static_cast<std::uint64_t>(t));
      const Vectors sums = summed(z, groups);
      Conservation conservation(257);
      for (std::size_t n = 0; n < count; ++n) {
        // One group in ten does not come about: its members keep what they have.
        if (!is_full && (t + groups_of(choice->table, 0).size()) % 10 == 0) {
          keep(bytes(g[n]), nodes, 257, state[n].data(), DataType::kFloat32, bytes(out[n]));
        } else {
          finish(sums[n].data(), size_in(groups, n), nodes, 257, is_full, state[n].data(),
                 DataType::kFloat32, bytes(out[n]));
        }
        conservation.node(before[n], g[n], out[n]);
      }
      conservation.expect(nodes);
    }
  }
}

}  // namespace
}  // namespace riffle::rules::gradient_rules_test
