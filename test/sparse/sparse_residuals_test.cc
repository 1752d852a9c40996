// sparse/exchange.h: what a worker keeps from one exchange to the next: residuals by each policy,
// the momentum of ef21, thresholds; and what becomes of it when the layout changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "sparse/exchange.h"
#include "test/plugin/collective/sparse/sparse_job.h"
#include "topology/base/check.h"

namespace riffle::sparse::sparse_residuals_test {
namespace {

using test::conservation_error;
using test::expect_identical;
using test::Job;
using test::random_gradients;
using test::Vectors;

// Two workers, one block each, one entry each: small enough to follow by hand.
TEST(SparseExchange, ResidualPoliciesDifferAsDescribed) {
  const Vectors gradients = {{5, 1, 2, 0}, {4, -8, 0, 3}};
  const auto residuals = [&](ResidualPolicy policy) {
    Job job({2, 1, 4, 0.5}, {.residual = policy});
    // Block 0 is elements 0, 1. Worker 1 sends -8 at 1; worker 0 then has {5, -7} and keeps -7.
    // Block 1: worker 0 sends 2 at 2; worker 1 then has {2, 3} and keeps 3.
    EXPECT_EQ(job.all_reduce(gradients)[0], (std::vector<float>{0, -7, 0, 3}));
    return job.residuals();
  };
  EXPECT_EQ(residuals(ResidualPolicy::kGlobal), (Vectors{{5, 0, 2, 0}, {4, 0, 0, 0}}));
  EXPECT_EQ(residuals(ResidualPolicy::kPartial), (Vectors{{5, 0, 0, 0}, {4, 0, 2, 0}}));
  EXPECT_EQ(residuals(ResidualPolicy::kLocal), (Vectors{{5, 0, 0, 0}, {4, 0, 0, 0}}));
}

TEST(SparseExchange, LocalResidualsKeepTheRoundingErrorOfWhatWasSent) {
  Job job({1, 1, 4, 0.5}, {.residual = ResidualPolicy::kLocal, .values = Element::kBfloat16});
  const float odd = 1 + 0x1p-12F;  // bfloat16 keeps seven bits of the fraction
  EXPECT_EQ(job.all_reduce({{0.5F, odd, 4, 0}})[0], (std::vector<float>{0, 1, 4, 0}));
  EXPECT_EQ(job.residuals()[0], (std::vector<float>{0.5F, 0x1p-12F, 0, 0}));
}

TEST(SparseExchange, StateThatSteersLaterCallsIsKeptAndEqualAmongPartners) {
  std::mt19937 random(10);
  Job job({12, 3, 40000, 0.02}, {.selection = Selection::kReuse});
  const std::uint64_t first = job.states[0].offer.entries();
  const std::uint64_t budget = job.layout.budget_of(0);
  for (int step = 0; step < 30; ++step) {
    // All see much the same, as in training: offers overlap, and h grows.
    const std::vector<float> common = random_gradients(random, 1, 40000)[0];
    Vectors gradients = random_gradients(random, 12, 40000);
    for (auto& g : gradients) {
      for (std::size_t j = 0; j < g.size(); ++j) g[j] = common[j] + 0.1F * g[j];
    }
    job.all_reduce(gradients);
  }
  for (int p = 0; p < 12; ++p) {
    EXPECT_EQ(job.states[p].offer.entries(), job.states[p % 4].offer.entries());
    EXPECT_GT(job.states[p].offer.entries(), first);
    EXPECT_LE(job.states[p].offer.entries(), budget);
    for (int block = 0; block < 4; ++block) {
      const Threshold& threshold = job.states[p].thresholds[block];
      EXPECT_EQ(threshold.exact_calls + threshold.reused_calls, 30U);
      // The residual grows fast in the first calls, so the threshold cannot be reused at once.
      EXPECT_GE(threshold.reused_calls, 15U) << "worker " << p << ", block " << block;
    }
  }
}

// Candidates are collected before anything has come, and kept up to date: nothing is missed and
// nothing stays that was cancelled.
TEST(SparseExchange, SelectsWhatAScanOfTheWholeBlockWould) {
  constexpr std::size_t kElements = 6000, kHalf = kElements / 2;
  std::mt19937 random(14);
  Job job({2, 1, kElements, 0.05}, {.selection = Selection::kReuse});
  std::uint64_t reused = 0;
  for (int step = 0; step < 60; ++step) {
    Vectors gradients = random_gradients(random, 2, kElements);
    for (std::size_t j = 0; j < kElements; j += 2) gradients[1][j] = -gradients[0][j];
    if (step == 30) gradients = Vectors(2, std::vector<float>(kElements, 1));  // far too many
    Vectors sums = job.residuals();
    std::vector<std::vector<Threshold>> thresholds;
    for (int p = 0; p < 2; ++p) {
      for (std::size_t j = 0; j < kElements; ++j) sums[p][j] = gradients[p][j] + sums[p][j];
      thresholds.push_back(job.states[p].thresholds);
    }
    Selector selector;
    std::vector<float> expected(kElements);
    Entries sent[2], kept;
    const auto scan = [&](int worker, int block, Entries& found) {
      selector.near_top_k(sums[worker].data() + block * kHalf, Element::kFloat32, kHalf,
                          job.layout.budget_of(block), thresholds[worker][block], found);
    };
    for (int p = 0; p < 2; ++p) scan(p, 1 - p, sent[p]);
    for (int p = 0; p < 2; ++p) {
      float* own = sums[p].data() + p * kHalf;
      for (std::size_t i = 0; i < sent[1 - p].count(); ++i) {
        own[sent[1 - p].indices()[i]] += sent[1 - p].values()[i];
      }
      scan(p, p, kept);
      for (std::size_t i = 0; i < kept.count(); ++i) {
        expected[p * kHalf + kept.indices()[i]] = kept.values()[i];
      }
    }
    ASSERT_EQ(job.all_reduce(gradients), Vectors(2, expected)) << "step " << step;
    for (int p = 0; p < 2; ++p) {
      for (int block = 0; block < 2; ++block) {
        const Threshold& is = job.states[p].thresholds[block];
        ASSERT_EQ(is.magnitude, thresholds[p][block].magnitude) << "step " << step;
        reused = std::max(reused, is.reused_calls);
      }
    }
  }
  EXPECT_GE(reused, 30U);
}

TEST(SparseExchange, AStateThatIsResetIsAsNew) {
  std::mt19937 random(11);
  for (const ResidualPolicy policy : {ResidualPolicy::kGlobal, ResidualPolicy::kEf21}) {
    const ExchangeOptions options{.selection = Selection::kReuse, .residual = policy};
    Job used({6, 2, 3000, 0.05}, options);
    for (int step = 0; step < 12; ++step) used.all_reduce(random_gradients(random, 6, 3000));
    for (ChunkState& state : used.states) state.reset();
    Job fresh({6, 2, 3000, 0.05}, options);
    const Vectors gradients = random_gradients(random, 6, 3000);
    EXPECT_EQ(used.all_reduce(gradients), fresh.all_reduce(gradients));
    EXPECT_EQ(used.residuals(), fresh.residuals());
    EXPECT_EQ(used.states[0].thresholds[0].exact_calls, 1U);
  }
}

// A density ramp, other teams, then a lost worker: those who remain lose nothing of theirs.
TEST(SparseExchange, ResidualsMoveToAnotherLayoutWhole) {
  constexpr std::size_t kElements = 2100;
  std::mt19937 random(13);
  std::vector<ChunkState> states;
  for (const Shape& shape :
       {Shape{6, 1, kElements, 0.3}, Shape{6, 1, kElements, 0.05}, Shape{6, 3, kElements, 0.01},
        Shape{5, 1, kElements, 0.01}, Shape{4, 2, kElements, 0.01}}) {
    Job job(shape, {.selection = Selection::kReuse});
    if (!states.empty()) {
      states.resize(static_cast<std::size_t>(shape.workers));
      for (int p = 0; p < shape.workers; ++p) states[p].move_to(job.layout, p);
      job.states = states;
    }
    for (int step = 0; step < 3; ++step) {
      const Vectors gradients = random_gradients(random, shape.workers, kElements);
      const Vectors before = job.residuals();
      const Vectors results = job.all_reduce(gradients);
      expect_identical(results);
      EXPECT_LE(conservation_error(gradients, before, job.residuals(), results[0]), 1.0);
    }
    EXPECT_NE(job.residuals()[0], std::vector<float>(kElements));
    states = job.states;
  }
  EXPECT_THROW(states[0].move_to(Layout({4, 2, 100, 0.01}), 0), InvariantBroken);
}

TEST(SparseExchange, Ef21TracksTheMomentum) {
  std::mt19937 random(6);
  for (const auto& [workers, teams] : {std::pair{5, 1}, {6, 2}, {7, 7}}) {
    constexpr std::size_t kElements = 900;
    constexpr float kRate = 0.3F;
    Job job({workers, teams, kElements, 0.05},
            {.residual = ResidualPolicy::kEf21, .momentum_rate = kRate});
    std::vector<double> size(kElements);
    const Vectors fixed = random_gradients(random, workers, kElements);
    double worst = 0, far = 0, near = 0;
    for (int step = 0; step < 120; ++step) {
      const Vectors results = job.all_reduce(fixed);
      expect_identical(results);
      for (std::size_t j = 0; j < kElements; ++j) {
        double sum = 0, magnitude = 0;
        for (int p = 0; p < workers; ++p) {
          sum += double{job.states[p].momentum[j]} - double{job.states[p].residual[j]};
          magnitude += std::fabs(fixed[p][j]);
        }
        size[j] += magnitude;
        worst =
            std::max(worst, std::fabs(sum - results[0][j]) / (2.0 * workers * 0x1p-24 * size[j]));
        double dense = 0;
        for (const auto& g : fixed) dense += g[j];
        (step == 0 ? far : near) += std::fabs(dense - results[0][j]) * (step == 0 || step == 119);
      }
    }
    EXPECT_LE(worst, 1.0);
    EXPECT_LT(near, far / 1000);  // with gradients that stay, the result becomes their sum
  }
}

TEST(SparseExchange, Ef21AveragesTheGradientsOfItsWorker) {
  std::mt19937 random(12);
  Job job({4, 2, 500, 0.1}, {.residual = ResidualPolicy::kEf21, .momentum_rate = 0.25F});
  std::vector<float> expected;
  for (int step = 0; step < 6; ++step) {
    const Vectors gradients = random_gradients(random, 4, 500);
    job.all_reduce(gradients);
    if (step == 0) expected = gradients[3];
    for (std::size_t j = 0; j < expected.size(); ++j) {
      expected[j] += 0.25F * (gradients[3][j] - expected[j]);
    }
    EXPECT_EQ(job.states[3].momentum, expected);
  }
}

}  // namespace
}  // namespace riffle::sparse::sparse_residuals_test
