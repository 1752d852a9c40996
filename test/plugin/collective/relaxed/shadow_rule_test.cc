// plugin/collective/relaxed/rules/shadow_rule.h and plugin/collective/base/shadow_settings.h: what
// holds whatever goes wrong between rounds, and what the page of policies says of the rules' speed.
// Whole jobs follow the rules' recursions in relaxed_calls_test.
#include "plugin/collective/relaxed/rules/shadow_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "plugin/collective/base/shadow_settings.h"
#include "plugin/collective/relaxed/shadow_rule_of.h"
#include "topology/plan/schedules/contraction.h"

namespace riffle::rules::shadow_rule_test {
namespace {

constexpr ShadowVariant kAll[] = {ShadowVariant::kDelta, ShadowVariant::kInterpolation,
                                  ShadowVariant::kBmuf, ShadowVariant::kEasgd, ShadowVariant::kFir};

// One segment on some nodes; the sums that the engine would make, in float32.
class Nodes {
 public:
  Nodes(const ShadowSettings& settings, int nodes, std::size_t count, DataType type)
      : rule_(shadow_rule_of(settings, nodes)),
        count_(count),
        type_(type),
        all_(static_cast<std::size_t>(nodes)),
        moved_(all_.size(), std::vector<double>(count)),
        asked_(count) {
    for (Node& n : all_) n.arrays.assign(3, std::vector<float>(count, 0));
  }

  // Every node's answer to its gradient. A node that is not `sure` keeps its own.
  void step(const std::vector<std::vector<float>>& g, const std::vector<bool>& sure) {
    for (std::size_t n = 0; n < all_.size(); ++n) {
      const std::vector<std::byte> in = narrowed(g[n]);
      std::vector<std::byte> out(in.size());
      const bool brings = sure[n] && !is_under_way_ && all_[n].is_due;
      rule_->step(state(n), brings, in.data(), size(), type_, count_, out.data());
      if (brings) all_[n].is_due = false;
      take(n, in, out);
    }
  }
  void begin(const std::vector<bool>& sure) {
    is_under_way_ = true;
    for (std::size_t n = 0; n < all_.size(); ++n) {
      all_[n].took_part = sure[n];
      all_[n].sent.assign(count_, 0);
      if (sure[n]) rule_->begin(state(n), count_, all_[n].sent.data());
    }
  }
  void end(bool is_lost) {
    is_under_way_ = false;
    std::vector<float> sum(count_, 0);
    int members = 0;
    for (const Node& n : all_) {
      members += n.took_part;
      for (std::size_t i = 0; i < count_; ++i) sum[i] += n.sent[i];
    }
    for (std::size_t n = 0; n < all_.size(); ++n) {
      Node& node = all_[n];
      node.is_due =
          is_lost || members == 0
              ? rule_->lost(state(n), node.took_part, node.is_due, count_)
              : rule_->end(state(n), node.took_part, node.is_due, {sum.data(), members}, count_);
    }
  }
  // No round may be under way.
  void full(const std::vector<std::vector<float>>& g, const std::vector<bool>& sure) {
    std::vector<float> sum(count_, 0), z(count_);
    int members = 0;
    for (std::size_t n = 0; n < all_.size(); ++n) {
      if (!sure[n]) continue;
      ++members;
      EXPECT_TRUE(rule_->prepare_full(state(n), all_[n].is_due, narrowed(g[n]).data(), type_,
                                      count_, z.data()));
      for (std::size_t i = 0; i < count_; ++i) sum[i] += z[i];
    }
    for (std::size_t n = 0; n < all_.size(); ++n) {
      const std::vector<std::byte> in = narrowed(g[n]);
      std::vector<std::byte> out(in.size());
      if (sure[n]) {
        rule_->finish_full(state(n), all_[n].is_due, {sum.data(), members}, size(),
                           members == size(), type_, count_, out.data());
        all_[n].is_due = false;
      } else {
        rule_->step(state(n), false, in.data(), size(), type_, count_, out.data());
      }
      take(n, in, out);
    }
  }

  int size() const { return static_cast<int>(all_.size()); }
  const std::vector<std::vector<double>>& moved() const { return moved_; }
  const std::vector<float>& array(std::size_t n, std::size_t i) const { return all_[n].arrays[i]; }
  // The most that a node's way differs from what its job asked for, of the mean over all nodes.
  double drift() const {
    double most = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      double mean = 0;
      for (const auto& of_node : moved_) mean += of_node[i] / size();
      most = std::max(most, std::fabs(mean - asked_[i]));
    }
    return most;
  }
  // ... and from each other.
  double spread() const {
    double most = 0;
    for (const auto& of_node : moved_) {
      for (std::size_t i = 0; i < count_; ++i) {
        most = std::max(most, std::fabs(of_node[i] - moved_[0][i]));
      }
    }
    return most;
  }

 private:
  struct Node {
    std::vector<std::vector<float>> arrays;
    std::vector<float> sent;
    bool took_part = false, is_due = false;
  };

  ShadowState state(std::size_t n) {
    std::vector<std::vector<float>>& a = all_[n].arrays;
    const int arrays = rule_->arrays();
    return {a[0].data(), arrays > 1 ? a[1].data() : nullptr, arrays > 2 ? a[2].data() : nullptr};
  }
  std::vector<std::byte> narrowed(const std::vector<float>& values) const {
    std::vector<std::byte> to(count_ * size_of(type_));
    narrow(values.data(), type_, count_, to.data());
    return to;
  }
  void take(std::size_t n, const std::vector<std::byte>& in, const std::vector<std::byte>& out) {
    std::vector<float> g(count_), r(count_);
    widen(in.data(), type_, count_, g.data());
    widen(out.data(), type_, count_, r.data());
    for (std::size_t i = 0; i < count_; ++i) {
      moved_[n][i] += static_cast<double>(r[i]) / size();
      asked_[i] += static_cast<double>(g[i]) / size();
    }
  }

  const std::unique_ptr<ShadowRule> rule_;
  const std::size_t count_;
  const DataType type_;
  std::vector<Node> all_;
  bool is_under_way_ = false;
  std::vector<std::vector<double>> moved_;
  std::vector<double> asked_;
};

std::vector<std::vector<float>> gradients(int nodes, std::size_t count, std::mt19937_64& random,
                                          float scale = 1) {
  std::normal_distribution<float> normal(0.2F, 1);
  std::vector<std::vector<float>> g(static_cast<std::size_t>(nodes), std::vector<float>(count));
  for (auto& of_node : g) {
    for (float& x : of_node) x = scale * normal(random);
  }
  return g;
}

// Nodes that are not sure of a call, rounds that come to nothing, steps over all nodes that some
// keep out of, results that come late: nothing is lost to the mean, and the next round that all
// take part in brings the nodes together.
TEST(ShadowRule, DeltaAndFirLoseNothingAndHeal) {
  constexpr int kNodes = 5;
  constexpr std::size_t kCount = 70;
  const std::vector<bool> all_nodes(kNodes, true);
  for (const ShadowVariant variant : {ShadowVariant::kDelta, ShadowVariant::kFir}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      std::mt19937_64 random(seed);
      Nodes job({.variant = variant}, kNodes, kCount, DataType::kFloat32);
      const auto sure = [&] {
        std::vector<bool> is_sure(kNodes);
        for (int n = 0; n < kNodes; ++n) is_sure[n] = random() % 4 != 0;
        return is_sure;
      };
      for (int round = 0; round < 30; ++round) {
        const std::vector<bool> who = sure();
        job.step(gradients(kNodes, kCount, random), who);
        job.begin(who);
        for (std::uint64_t i = random() % 3; i > 0; --i) {
          job.step(gradients(kNodes, kCount, random), sure());
        }
        job.end(random() % 5 == 0);
        for (std::uint64_t i = random() % 3; i > 0; --i) {
          job.step(gradients(kNodes, kCount, random), sure());
        }
        if (round % 7 == 6) job.full(gradients(kNodes, kCount, random), sure());
      }
      const std::vector<std::vector<float>> nothing(kNodes, std::vector<float>(kCount, 0));
      job.step(gradients(kNodes, kCount, random), all_nodes);
      EXPECT_LT(job.drift(), 1e-4) << name_of(variant) << seed;
      EXPECT_GT(job.spread(), 0.1) << name_of(variant) << seed;
      job.begin(all_nodes);
      job.end(false);
      job.step(nothing, all_nodes);
      EXPECT_LT(job.drift(), 1e-4) << name_of(variant) << seed;
      EXPECT_LT(job.spread(), 1e-4) << name_of(variant) << seed;
    }
  }
}

// ... and the centres that follow are the same bits on all of them, and a step over all nodes
// brings all together without touching the centre's place.
TEST(ShadowRule, CentresStayAlikeWhoeverKeepsOut) {
  constexpr int kNodes = 5;
  constexpr std::size_t kCount = 70;
  for (const ShadowVariant variant : {ShadowVariant::kEasgd, ShadowVariant::kBmuf}) {
    std::mt19937_64 random(3);
    Nodes job({.variant = variant}, kNodes, kCount, DataType::kFloat32);
    for (int round = 0; round < 60; ++round) {
      std::vector<bool> who(kNodes);
      for (int n = 0; n < kNodes; ++n) who[n] = random() % 4 != 0;
      job.step(gradients(kNodes, kCount, random), who);
      job.begin(who);
      job.end(random() % 5 == 0);
      if (round % 7 == 6) job.full(gradients(kNodes, kCount, random), who);
      for (int n = 1; n < kNodes; ++n) {
        ASSERT_EQ(job.array(n, 1), job.array(0, 1)) << name_of(variant) << round;
        ASSERT_EQ(job.array(n, 2), job.array(0, 2)) << name_of(variant) << round;
      }
    }
    std::vector<double> before(kCount);
    for (std::size_t i = 0; i < kCount; ++i) before[i] = job.array(0, 1)[i] - job.array(0, 0)[i];
    const double stood = job.moved()[0][5];
    job.full(gradients(kNodes, kCount, random), std::vector<bool>(kNodes, true));
    EXPECT_LT(job.spread(), 1e-4);
    const double went = job.moved()[0][5] - stood;
    EXPECT_NEAR(job.array(0, 1)[5] - job.array(0, 0)[5], before[5] - went, 1e-4);
  }
}

// A gradient, or a mean, that is no finite number leaves no trace.
TEST(ShadowRule, NotFiniteLeavesNoTrace) {
  constexpr std::size_t kCount = 3;
  const std::vector<bool> all_nodes(2, true);
  for (const ShadowVariant variant : kAll) {
    Nodes job({.variant = variant}, 2, kCount, DataType::kFloat32);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kHuge = 1.5e38F;  // two of them a node, and the nodes' sum is no number
    job.step({{1, kInfinity, kHuge}, {2, 5, kHuge}}, all_nodes);
    job.step({{1, kInfinity, kHuge}, {2, 5, kHuge}}, all_nodes);
    job.begin(all_nodes);
    job.end(false);
    for (int i = 0; i < 3; ++i) {
      job.step({{1, 1, 1}, {2, 2, 2}}, all_nodes);
      job.begin(all_nodes);
      job.end(false);
    }
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t a = 0; a < 3; ++a) {
        for (const float x : job.array(n, a)) EXPECT_TRUE(std::isfinite(x)) << name_of(variant);
      }
    }
    EXPECT_GT(job.array(0, 0)[1], 0) << name_of(variant);
  }
}

// The job adds up answers rounded to bfloat16. What FIR gathers follows them: else no later round
// would ever know of the difference.
TEST(ShadowRule, FirTakesRoundingAlong) {
  constexpr std::size_t kCount = 300;
  constexpr int kNodes = 4;
  const std::vector<bool> all_nodes(kNodes, true);
  std::mt19937_64 random(8);
  Nodes job({.variant = ShadowVariant::kFir}, kNodes, kCount, DataType::kBfloat16);
  for (int t = 0; t < 400; ++t) {
    job.step(gradients(kNodes, kCount, random), all_nodes);
    if (t % 4 == 0) job.begin(all_nodes);
    if (t % 4 == 2) job.end(false);
  }
  const std::vector<std::vector<float>> nothing(kNodes, std::vector<float>(kCount, 0));
  for (int t = 0; t < 3; ++t) {
    job.step(nothing, all_nodes);
    job.begin(all_nodes);
    job.end(false);
  }
  job.step(nothing, all_nodes);
  EXPECT_LT(job.spread(), 1e-3);  // 400 roundings of 2^-9 each would be some 0.05
}

// Nodes that differ at random, rounds of 6 steps: the deviation just after a correction is that of
// the table, and under steady gradients the mean goes on at the speed of the formula.
TEST(ShadowRule, DeviationAndSpeedAreThoseOfTheFormulas) {
  constexpr std::size_t kCount = 2000;
  constexpr int kNodes = 8, kSteps = 6;
  const std::vector<bool> all_nodes(kNodes, true);
  for (const ShadowVariant variant : kAll) {
    const ShadowSettings settings{.variant = variant, .pull = 0.4, .follow = 0.7};
    std::mt19937_64 random(17);
    Nodes noisy(settings, kNodes, kCount, DataType::kFloat32);
    double variance = 0;
    constexpr int kRounds = 30, kWarm = 10;
    for (int round = 0; round < kRounds; ++round) {
      noisy.begin(all_nodes);
      for (int t = 0; t < kSteps; ++t) {
        if (t == kSteps - 1) noisy.end(false);
        noisy.step(gradients(kNodes, kCount, random), all_nodes);
      }
      if (round < kWarm) continue;
      for (std::size_t i = 0; i < kCount; ++i) {
        double mean = 0;
        for (const auto& of_node : noisy.moved()) mean += of_node[i] / kNodes;
        for (const auto& of_node : noisy.moved()) {
          variance +=
              (of_node[i] - mean) * (of_node[i] - mean) / kNodes / kCount / (kRounds - kWarm);
        }
      }
    }
    ScheduleOptions options;
    put_into(settings, &options);
    EXPECT_NEAR(
        variance / (delta_deviation(kNodes, options.delta, kSteps) * options.kept * options.kept),
        1, 0.05)
        << name_of(variant);

    for (const int busy : {1, 6}) {  // steps from the snapshot to the correction
      Nodes steady(settings, kNodes, 1, DataType::kFloat32);
      const std::vector<std::vector<float>> one(kNodes, std::vector<float>(1, 1));
      double before = 0;
      for (int round = 0; round < 240; ++round) {
        if (round == 120) before = steady.moved()[0][0];
        steady.begin(all_nodes);
        for (int t = 1; t <= kSteps; ++t) {
          if (t == busy) steady.end(false);
          steady.step(one, all_nodes);
        }
      }
      const double speed = (steady.moved()[0][0] - before) / (120.0 * kSteps);
      EXPECT_NEAR(speed, shadow_speed(settings, kNodes, busy / 6.0), 2e-3)
          << name_of(variant) << busy;
    }
  }
}

TEST(ShadowSettings, NamesAndNumbers) {
  for (const ShadowVariant variant : kAll) {
    EXPECT_EQ(shadow_variant_of(name_of(variant)), variant);
  }
  EXPECT_EQ(shadow_variant_of("DELTA"), std::nullopt);
  EXPECT_EQ(describe({}, 8), "delta");
  EXPECT_EQ(describe({.variant = ShadowVariant::kBmuf}, 8),
            "bmuf (pull 0.5, block momentum 0.875, block rate 1)");
  EXPECT_EQ(describe({.variant = ShadowVariant::kEasgd, .pull = 0.25}, 8),
            "easgd (pull 0.25, follow 0.9)");
}

}  // namespace
}  // namespace riffle::rules::shadow_rule_test
