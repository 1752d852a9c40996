// plugin/policy/rules/gradient_rules.h against direct simulations of what each rule stands for.
#include "plugin/policy/rules/gradient_rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <numeric>
#include <random>

#include "topology/plan/patterns/contraction.h"
#include "topology/plan/patterns/families.h"

namespace riffle::rules {
namespace {

using Vectors = std::vector<std::vector<float>>;

const std::byte* bytes(const std::vector<float>& v) {
  return reinterpret_cast<const std::byte*>(v.data());
}
std::byte* bytes(std::vector<float>& v) { return reinterpret_cast<std::byte*>(v.data()); }

PatternTable grid(const std::vector<int>& shape) {
  const int nodes = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
  const Fabric f = even_fabric(nodes, 1000);
  const FabricView view(f);
  std::string name = "grid";
  for (int side : shape) name += (name == "grid" ? " " : " x ") + std::to_string(side);
  for (const Cycle& cycle : propose_grids(view, {})) {
    if (cycle.name == name) return table_of(view, cycle);
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

// The groups of a step, nodes without one by themselves.
NodeGroups groups_of(const PatternTable& table, std::uint64_t step) {
  std::vector<bool> is_placed(static_cast<std::size_t>(table.nodes), false);
  NodeGroups groups;
  for (const Group& g : table.at(step, 0).levels[0].groups) {
    groups.push_back(g.members);
    for (int m : g.members) is_placed[static_cast<std::size_t>(m)] = true;
  }
  for (std::size_t n = 0; n < is_placed.size(); ++n) {
    if (!is_placed[n]) groups.push_back({static_cast<int>(n)});
  }
  return groups;
}

NodeGroups everybody(int nodes) {
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

// What the engine does: every member gets the float32 sum over its group.
Vectors summed(const Vectors& z, const NodeGroups& groups) {
  Vectors sums(z.size());
  for (const auto& group : groups) {
    std::vector<float> sum(z[0].size(), 0);
    for (int m : group) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += z[static_cast<std::size_t>(m)][i];
    }
    for (int m : group) sums[static_cast<std::size_t>(m)] = sum;
  }
  return sums;
}

int size_in(const NodeGroups& groups, std::size_t node) {
  for (const auto& group : groups) {
    if (std::find(group.begin(), group.end(), static_cast<int>(node)) != group.end()) {
      return static_cast<int>(group.size());
    }
  }
  return 0;
}

// Noisy quadratics with curvature .01 .. 1 whose minima differ between the nodes: gradient of node
// i at x is h (x - target_i) + noise.
class Problem {
 public:
  Problem(std::size_t nodes, std::size_t size) : random_(11), targets_(nodes) {
    for (std::size_t k = 0; k < size; ++k) {
      curvature_.push_back(0.01 * std::pow(100.0, static_cast<double>(k) / (size - 1.0)));
    }
    for (auto& target : targets_) {
      for (std::size_t k = 0; k < size; ++k) target.push_back(1 + normal_(random_));
    }
  }
  std::size_t nodes() const { return targets_.size(); }
  std::size_t size() const { return curvature_.size(); }
  void draw() {
    noise_.assign(nodes(), std::vector<double>(size()));
    for (auto& of_node : noise_) {
      for (double& x : of_node) x = 0.5 * normal_(random_);
    }
  }
  double gradient(std::size_t node, std::size_t k, double x) const {
    return curvature_[k] * (x - targets_[node][k]) + noise_[node][k];
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<double> curvature_;
  std::vector<std::vector<double>> targets_, noise_;
};

using Parameters = std::vector<std::vector<double>>;

void average(Parameters& x, const NodeGroups& groups) {
  for (const auto& group : groups) {
    for (std::size_t k = 0; k < x[0].size(); ++k) {
      double mean = 0;
      for (int m : group) mean += x[static_cast<std::size_t>(m)][k];
      mean /= static_cast<double>(group.size());
      for (int m : group) x[static_cast<std::size_t>(m)][k] = mean;
    }
  }
}

struct Distance {
  double most = 0, reach = 1;
  void take(const Parameters& direct, const Parameters& job) {
    for (std::size_t n = 0; n < direct.size(); ++n) {
      for (std::size_t k = 0; k < direct[n].size(); ++k) {
        most = std::max(most, std::fabs(direct[n][k] - job[n][k]));
        reach = std::max(reach, std::fabs(direct[n][k]));  // from x = 0
      }
    }
  }
  double relative() const { return most / reach; }
};

// The float64 simulation of parameter averaging and the job under float32 rules, side by side. The
// gradients are those at each one's own parameters.
struct Schedule {
  int steps = 5000;
  int full_every = 0;
  std::function<double(int)> rate = [](int) { return 0.05; };
};

double y_state_distance(const Schedule& schedule) {
  Problem problem(16, 40);
  const PatternTable table = grid({4, 4});
  const std::size_t nodes = problem.nodes(), size = problem.size();
  Parameters direct(nodes, std::vector<double>(size, 0)), job = direct;
  Vectors state(nodes, std::vector<float>(size, 0)), z = state, g = state, out = state;
  Distance distance;
  for (int t = 0; t < schedule.steps; ++t) {
    problem.draw();
    const double rate = schedule.rate(t);
    const bool is_full = schedule.full_every > 0 && t % schedule.full_every == 0;
    const NodeGroups groups =
        is_full ? everybody(16) : groups_of(table, static_cast<std::uint64_t>(t));
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
  const PatternTable table = grid({4, 4});
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
        is_full ? everybody(16) : groups_of(table, static_cast<std::uint64_t>(t));
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
    const PatternTable table = grid(shape);
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

// |sum of outputs - N * sum of inputs| <= N 2^-22 sum(|y| + |g|), per element.
struct Conservation {
  std::vector<double> outputs, inputs, sizes;
  explicit Conservation(std::size_t n) : outputs(n), inputs(n), sizes(n) {}
  void node(const std::vector<float>& y, const std::vector<float>& g,
            const std::vector<float>& out) {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      outputs[k] += out[k];
      inputs[k] += g[k];
      sizes[k] += std::fabs(y[k]) + std::fabs(g[k]);
    }
  }
  void expect(int nodes) const {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      ASSERT_LE(std::fabs(outputs[k] - nodes * inputs[k]), nodes * std::ldexp(sizes[k], -22));
    }
  }
};

TEST(GradientRules, GroupsConserveTheSum) {
  std::mt19937_64 random(9);
  std::normal_distribution<float> normal;
  for (const int nodes : {3, 8, 12, 17}) {
    const Fabric f = even_fabric(nodes, 1000);
    const auto choice = choose_pattern(f, PatternMode::kDsSync, {});
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
          is_full ? everybody(nodes) : groups_of(choice->table, static_cast<std::uint64_t>(t));
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
    const Vectors sums = summed(snapshot, everybody(kNodes));
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
  double sum = 0;
  int counted = 0;
  for (int round = 0; round < 60; ++round) {
    const Vectors snapshot = state;
    const Vectors sums = summed(snapshot, everybody(kNodes));
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
    for (std::size_t k = 0; k < kSize; ++k) {
      double mean = 0;
      for (std::size_t n = 0; n < kNodes; ++n) mean += state[n][k] / kNodes;
      for (std::size_t n = 0; n < kNodes; ++n) {
        sum += (state[n][k] - mean) * (state[n][k] - mean);
        ++counted;
      }
    }
  }
  EXPECT_NEAR(sum / counted / delta_deviation(kNodes, 0.5, kSteps), 1, 0.05);
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
    double sum = 0;
    int counted = 0;
    for (int t = 0; t < 60 + 4 * delay; ++t) {
      for (auto& of_node : g) {
        for (float& x : of_node) x = normal(random);
      }
      Conservation conservation(kSize);
      sent.push_back(g);
      const bool arrives = static_cast<int>(sent.size()) > delay;
      Vectors sums;
      if (arrives) sums = summed(sent.front(), everybody(kNodes));
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
      for (std::size_t k = 0; k < kSize; ++k) {
        double mean = 0;
        for (std::size_t n = 0; n < kNodes; ++n) mean += state[n][k] / kNodes;
        for (std::size_t n = 0; n < kNodes; ++n) {
          sum += (state[n][k] - mean) * (state[n][k] - mean);
          ++counted;
        }
      }
    }
    EXPECT_NEAR(sum / counted / fir_deviation(kNodes, delay), 1, 0.05) << delay;
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
      const Vectors delta_sums = summed(snapshot, everybody(kNodes));
      const Vectors fir_sums = summed(previous, everybody(kNodes));
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
        const Vectors sums = summed(snapshot, everybody(8));
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

std::vector<std::byte> narrowed(const std::vector<float>& v, DataType type) {
  std::vector<std::byte> to(v.size() * size_of(type));
  narrow(v.data(), type, v.size(), to.data());
  return to;
}

// The job adds up rounded outputs. State follows them, so that nodes do not drift apart by
// rounding.
TEST(GradientRules, RoundingOfNarrowTypesIsAveragedAway) {
  constexpr int kNodes = 16;
  constexpr std::size_t kSize = 1030;  // more than a block, and no multiple
  const PatternTable table = grid({4, 4});
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
          is_full ? everybody(kNodes) : groups_of(table, static_cast<std::uint64_t>(t));
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
}  // namespace riffle::rules
