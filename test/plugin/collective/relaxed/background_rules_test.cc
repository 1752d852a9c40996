// plugin/collective/relaxed/rules/gradient_rules.h: the rules of shadow_sync, whose averages come
// in the background and late, against direct simulations and the formulas of how far nodes drift
// apart.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>

#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "test/plugin/collective/relaxed/rule_simulation.h"
#include "topology/plan/schedules/contraction.h"

namespace riffle::rules::background_rules_test {
namespace {

// Rounds of the delta rule without noise: how far the nodes are apart after `rounds`, of 1. The
// correction from the snapshot of round n is applied at the end of round n + overlap.
double apart_after(float delta, int overlap, int rounds) {
  constexpr int kNodes = 8;
  Vectors state(kNodes, std::vector<float>(1, 0));
  const std::vector<float> nothing(1, 0);
  std::vector<float> out(1);
  for (std::size_t n = 0; n < kNodes; ++n) state[n][0] = n % 2 == 0 ? 1.0F : -1.0F;
  std::deque<Vectors> snapshots;
  double most = 0;
  for (int round = 0; round < rounds; ++round) {
    snapshots.push_back(state);
    if (static_cast<int>(snapshots.size()) <= overlap) continue;
    const Vectors& snapshot = snapshots.front();
    const Vectors sums = summed(snapshot, all_nodes(kNodes));
    most = 0;
    for (std::size_t n = 0; n < kNodes; ++n) {
      std::vector<float> missing(1);
      correction(sums[n].data(), kNodes, snapshot[n].data(), 1, delta, missing.data());
      step_alone(bytes(nothing), missing.data(), kNodes, 1, state[n].data(), DataType::kFloat32,
                 bytes(out));
      most = std::max(most, std::fabs(static_cast<double>(state[n][0])));
    }
    snapshots.pop_front();
    if (most > 1e6) break;
  }
  return most;
}

// The mean of the nodes' squared distances from their mean, over all elements of all states added.
class Deviation {
 public:
  void add(const Vectors& state) {
    for (std::size_t k = 0; k < state[0].size(); ++k) {
      double mean = 0;
      for (const auto& node : state) mean += node[k] / static_cast<double>(state.size());
      for (const auto& node : state) sum_ += (node[k] - mean) * (node[k] - mean);
    }
    counted_ += static_cast<double>(state.size() * state[0].size());
  }
  double mean() const { return sum_ / counted_; }

 private:
  double sum_ = 0, counted_ = 0;
};

TEST(ShadowRules, DeltaIsStableBelowItsLimitOnly) {
  for (const int overlap : {1, 2, 4}) {
    const double limit = delta_limit(overlap);
    EXPECT_LT(apart_after(static_cast<float>(0.95 * limit), overlap, 2000), 1e-3) << overlap;
    EXPECT_GT(apart_after(static_cast<float>(1.05 * limit), overlap, 2000), 1e3) << overlap;
  }
}

TEST(ShadowRules, DeltaConservesTheSumAndDeviatesAsPredicted) {
  constexpr int kNodes = 16, kSteps = 8;
  constexpr std::size_t kSize = 1000;
  std::mt19937_64 random(21);
  std::normal_distribution<float> normal;
  Vectors state(kNodes, std::vector<float>(kSize, 0)), g = state, out = state;
  Deviation deviation;
  for (int round = 0; round < 60; ++round) {
    const Vectors snapshot = state;
    const Vectors sums = summed(snapshot, all_nodes(kNodes));
    for (int step = 0; step < kSteps; ++step) {
      const bool ends = step == kSteps - 1;
      Conservation conservation(kSize);
      for (std::size_t n = 0; n < kNodes; ++n) {
        for (float& x : g[n]) x = normal(random);
        std::vector<float> missing(kSize);
        correction(sums[n].data(), kNodes, snapshot[n].data(), kSize, 0.5F, missing.data());
        const std::vector<float> before = state[n];
        step_alone(bytes(g[n]), ends ? missing.data() : nullptr, kNodes, kSize, state[n].data(),
                   DataType::kFloat32, bytes(out[n]));
        conservation.node(before, g[n], out[n]);
      }
      conservation.expect(kNodes);
    }
    if (round < 10) continue;
    deviation.add(state);
  }
  EXPECT_NEAR(deviation.mean() / delta_deviation(kNodes, 0.5, kSteps), 1, 0.05);
}

// Each step's gradients are averaged `delay` steps later.
TEST(ShadowRules, FirIsBoundedForEveryDelay) {
  constexpr int kNodes = 16;
  constexpr std::size_t kSize = 500;
  for (const int delay : {1, 4, 16}) {
    std::mt19937_64 random(33);
    std::normal_distribution<float> normal;
    Vectors state(kNodes, std::vector<float>(kSize, 0)), g = state, out = state;
    std::deque<Vectors> sent;
    Deviation deviation;
    for (int t = 0; t < 60 + 4 * delay; ++t) {
      for (auto& of_node : g) {
        for (float& x : of_node) x = normal(random);
      }
      Conservation conservation(kSize);
      sent.push_back(g);
      const bool arrives = static_cast<int>(sent.size()) > delay;
      Vectors sums;
      if (arrives) sums = summed(sent.front(), all_nodes(kNodes));
      for (std::size_t n = 0; n < kNodes; ++n) {
        std::vector<float> missing(kSize);
        if (arrives) {
          correction(sums[n].data(), kNodes, sent.front()[n].data(), kSize, 1, missing.data());
        }
        const std::vector<float> before = state[n];
        step_alone(bytes(g[n]), arrives ? missing.data() : nullptr, kNodes, kSize, state[n].data(),
                   DataType::kFloat32, bytes(out[n]));
        conservation.node(before, g[n], out[n]);
      }
      conservation.expect(kNodes);
      if (arrives) sent.pop_front();
      if (t < 2 * delay) continue;
      deviation.add(state);
    }
    EXPECT_NEAR(deviation.mean() / fir_deviation(kNodes, delay), 1, 0.05) << delay;
  }
}

TEST(ShadowRules, PerRoundFirIsTheDeltaRuleOfBackToBackRounds) {
  constexpr int kNodes = 4;
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  Vectors fir(kNodes, std::vector<float>(1, 0)), delta = fir, gathered = fir, previous = fir,
                                                 g = fir, out = fir;
  for (int round = 0; round < 50; ++round) {
    const Vectors snapshot = delta;
    for (int step = 0; step < 4; ++step) {
      const bool ends = step == 3;
      for (std::size_t n = 0; n < kNodes; ++n) g[n][0] = normal(random);
      const Vectors delta_sums = summed(snapshot, all_nodes(kNodes));
      const Vectors fir_sums = summed(previous, all_nodes(kNodes));
      for (std::size_t n = 0; n < kNodes; ++n) {
        float missing = 0;
        correction(fir_sums[n].data(), kNodes, previous[n].data(), 1, 1, &missing);
        step_gathering(bytes(g[n]), ends ? &missing : nullptr, kNodes, 1, fir[n].data(),
                       gathered[n].data(), DataType::kFloat32, bytes(out[n]));
        correction(delta_sums[n].data(), kNodes, snapshot[n].data(), 1, 1, &missing);
        step_alone(bytes(g[n]), ends ? &missing : nullptr, kNodes, 1, delta[n].data(),
                   DataType::kFloat32, bytes(out[n]));
      }
    }
    previous = gathered;
    for (auto& sum : gathered) sum[0] = 0;
    for (std::size_t n = 0; n < kNodes; ++n) EXPECT_NEAR(fir[n][0], delta[n][0], 2e-4) << round;
  }
}

// ShadowMA as published, BMUF and EASGD-like against their recursions in parameters (3.3 of the
// paper's notation): w <- w - eta g; at the end of a round the centre moves, then w towards it.
enum class Variant { kInterpolation, kBmuf, kEasgd };

double variant_distance(Variant variant) {
  Problem problem(8, 20);
  const std::size_t nodes = 8, size = 20;
  constexpr double kRate = 0.05, kPull = 0.4, kFollow = 0.6, kMomentum = 0.3;
  constexpr int kSteps = 6;
  Parameters direct(nodes, std::vector<double>(size, 0)), job = direct;
  std::vector<double> centre_direct(size, 0), velocity_direct(size, 0);
  Vectors state(nodes, std::vector<float>(size, 0)), g = state, out = state;
  Vectors centre = state, velocity = state;
  Distance distance;
  for (int round = 0; round < 400; ++round) {
    const Parameters snapshot_direct = direct;
    const Vectors snapshot = state;
    for (int step = 0; step < kSteps; ++step) {
      problem.draw();
      for (std::size_t n = 0; n < nodes; ++n) {
        for (std::size_t k = 0; k < size; ++k) {
          direct[n][k] -= kRate * problem.gradient(n, k, direct[n][k]);
          g[n][k] = static_cast<float>(problem.gradient(n, k, job[n][k]));
        }
      }
      if (step < kSteps - 1) {
        for (std::size_t n = 0; n < nodes; ++n) {
          step_alone(bytes(g[n]), nullptr, 8, size, state[n].data(), DataType::kFloat32,
                     bytes(out[n]));
        }
      } else {
        for (std::size_t k = 0; k < size; ++k) {
          double mean = 0;
          for (std::size_t n = 0; n < nodes; ++n) mean += snapshot_direct[n][k] / 8;
          switch (variant) {
            case Variant::kInterpolation:
              centre_direct[k] = mean;
              break;
            case Variant::kBmuf:
              velocity_direct[k] =
                  kMomentum * velocity_direct[k] + kFollow * (mean - centre_direct[k]);
              centre_direct[k] += velocity_direct[k];
              break;
            case Variant::kEasgd:
              centre_direct[k] = (1 - kFollow) * centre_direct[k] + kFollow * mean;
              break;
          }
          for (std::size_t n = 0; n < nodes; ++n) {
            direct[n][k] += kPull * (centre_direct[k] - direct[n][k]);
          }
        }
        const Vectors sums = summed(snapshot, all_nodes(8));
        for (std::size_t n = 0; n < nodes; ++n) {
          switch (variant) {
            case Variant::kInterpolation:
              move_centre(sums[n].data(), 8, size, 1, centre[n].data());
              break;
            case Variant::kBmuf:
              move_block(sums[n].data(), 8, size, kFollow, kMomentum, centre[n].data(),
                         velocity[n].data());
              break;
            case Variant::kEasgd:
              move_centre(sums[n].data(), 8, size, kFollow, centre[n].data());
              break;
          }
          step_towards(bytes(g[n]), centre[n].data(), kPull, 8, size, state[n].data(),
                       DataType::kFloat32, bytes(out[n]));
          EXPECT_EQ(centre[n], centre[0]);  // all nodes keep the same one
        }
      }
      for (std::size_t n = 0; n < nodes; ++n) {
        for (std::size_t k = 0; k < size; ++k) {
          job[n][k] -= kRate * (static_cast<double>(out[n][k]) / 8);
        }
      }
      distance.take(direct, job);
    }
  }
  return distance.relative();
}

TEST(ShadowRules, OtherVariantsFollowTheirSimulation) {
  EXPECT_LE(variant_distance(Variant::kInterpolation), 1e-5);
  EXPECT_LE(variant_distance(Variant::kBmuf), 1e-5);
  EXPECT_LE(variant_distance(Variant::kEasgd), 1e-5);
}

}  // namespace
}  // namespace riffle::rules::background_rules_test
