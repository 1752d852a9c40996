// nccl-tests-patches/src/riffle_check.h and riffle_gradients.h: the checks pass what the modes
// make, and see one wrong element.
#include "nccl-tests-patches/src/riffle_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "test/plugin/collective/sparse/sparse_job.h"

namespace riffle::nccl_check_test {
namespace {

using namespace riffle_tests;
using Vectors = std::vector<std::vector<float>>;  // by rank

constexpr std::size_t kElements = 3000;
constexpr int kSteps = 4;

Vectors data_of(const Gradients& gradients, std::uint64_t step, int ranks) {
  Vectors all(static_cast<std::size_t>(ranks), std::vector<float>(kElements));
  for (int r = 0; r < ranks; ++r) gradients.fill(step, r, 0, kElements, all[r].data());
  return all;
}

Vectors zeros(int ranks) {
  return Vectors(static_cast<std::size_t>(ranks), std::vector<float>(kElements));
}

// ---- Data

TEST(NcclGradients, AreTheSameHoweverTheyAreCutAndOthersByRankAndStep) {
  const Gradients gradients, again;
  std::vector<float> whole(200'000), part(1000), other(1000);
  gradients.fill(7, 3, 0, whole.size(), whole.data());
  for (const std::size_t at : {0UL, 65'000UL, 131'072UL, 199'000UL}) {
    again.fill(7, 3, at, part.size(), part.data());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + at)) << at;
  }
  again.fill(7, 2, 199'000, other.size(), other.data());
  EXPECT_NE(other, part);
  again.fill(8, 3, 199'000, other.size(), other.data());
  EXPECT_NE(other, part);
}

// The largest hundredth holds several times what it would of a bell-shaped distribution (7 %), and
// nothing leaves what float16 can hold.
TEST(NcclGradients, AreHeavyTailedAndFitFloat16) {
  std::vector<float> numbers(1 << 20);
  Gradients().fill(1, 0, 0, numbers.size(), numbers.data());
  double sum = 0, top = 0;
  for (float& x : numbers) {
    x = x * x;
    sum += x;
  }
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  for (std::size_t i = 0; i < numbers.size() / 100; ++i) top += numbers[i];
  EXPECT_GT(top / sum, 0.3);
  EXPECT_LT(std::sqrt(numbers[0]), 100);
}

// ---- Exact

TEST(NcclCheck, ExactSumsPassInAnyOrderAndAWrongElementIsSeen) {
  constexpr int kRanks = 8;
  const Gradients gradients;
  const Vectors data = data_of(gradients, 5, kRanks);
  const Inputs in = inputs_of(gradients, 5, 1, kRanks, 0, kElements);
  for (const bool is_backwards : {false, true}) {
    std::vector<float> result(kElements);
    for (int k = 0; k < kRanks; ++k) {
      const auto& of_rank = data[is_backwards ? kRanks - 1 - k : k];
      for (std::size_t i = 0; i < kElements; ++i) result[i] += of_rank[i];
    }
    EXPECT_EQ(wrong_exact(result.data(), in, kRanks, float32_spacing()), 0U);
    std::vector<float> without = result;  // one rank's contribution to one element is missing
    without[1234] -= data[2][1234];
    EXPECT_EQ(wrong_exact(without.data(), in, kRanks, float32_spacing()), 1U);
    result[17] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(wrong_exact(result.data(), in, kRanks, float32_spacing()), 1U);
  }
}

// ---- Sparse: the real library's results.

struct SparseRun {
  explicit SparseRun(int ranks, sparse::ResidualPolicy policy = sparse::ResidualPolicy::kGlobal)
      : ranks(ranks), job({ranks, 1, kElements, 0.02}, {.residual = policy}) {
    // What lies in the residuals from before does not belong to the window.
    for (int step = 0; step < 3; ++step) call(data_of(gradients, 99, ranks), nullptr);
    drain(nullptr);
    for (int step = 0; step < kSteps; ++step) {
      call(data_of(gradients, 1000 + static_cast<unsigned>(step), ranks), &window);
    }
    delivered = nonzero;
    drain(&window);
  }

  void call(const Vectors& data, Window* into) {
    Vectors results = job.all_reduce(data);
    nonzero =
        kElements - static_cast<std::size_t>(std::count(results[0].begin(), results[0].end(), 0));
    for (const auto& result : results) {
      EXPECT_EQ(digest_of(result.data(), 4 * kElements),
                digest_of(results[0].data(), 4 * kElements));
    }
    if (into != nullptr) into->add(results[0].data());
  }

  void drain(Window* into) {
    int calls = 0;
    do {
      call(zeros(ranks), into);
    } while (nonzero != 0 && ++calls < 2000);
    EXPECT_LT(calls, 2000);
  }

  std::size_t wrong() const {
    return wrong_sparse(window, 0, inputs_of(gradients, 1000, kSteps, ranks, 0, kElements), ranks,
                        float32_spacing());
  }

  Gradients gradients;
  int ranks;
  sparse::test::Job job;
  Window window{kElements};
  std::size_t nonzero = 0, delivered = 0;
};

TEST(NcclCheck, SparseSumsPassOnceTheirResidualsAreDrained) {
  for (const int ranks : {2, 3, 8}) {
    const SparseRun run(ranks);
    EXPECT_LT(run.delivered, kElements / 20) << "this was no sparse sum";
    EXPECT_GT(run.window.calls(), kSteps + 10);
    EXPECT_EQ(run.wrong(), 0U) << ranks;
  }
}

TEST(NcclCheck, OfSparseSumsAWrongElementIsSeen) {
  SparseRun run(8);
  std::vector<float> extra(kElements);
  extra[2001] = 0.01F;
  run.window.add(extra.data());
  EXPECT_EQ(run.wrong(), 1U);
}

// A policy that loses what was dropped on the way, and results whose residuals never came.
TEST(NcclCheck, SparseSumsThatLoseGradientsAreSeen) {
  EXPECT_GT(SparseRun(8, sparse::ResidualPolicy::kLocal).wrong(), kElements / 10);
  SparseRun run(3);
  run.window = Window(kElements);
  for (int step = 0; step < kSteps; ++step) {
    run.call(data_of(run.gradients, 1000 + static_cast<unsigned>(step), 3), &run.window);
  }
  EXPECT_GT(run.wrong(), kElements / 2);
}

// ---- Relaxed: DS-Sync's rule (docs/policies.md) in pairs that change from step to step.

class DsSync {
 public:
  explicit DsSync(int ranks) : state_(zeros(ranks)) {}

  Vectors all_reduce(const Vectors& data) {
    const int ranks = static_cast<int>(data.size());
    Vectors results = data;
    ++step_;
    for (int r = 0; r < ranks; ++r) {
      const int distance = step_ % 2 == 0 ? 1 : 2;
      const int peer = r ^ distance;
      for (std::size_t i = 0; i < kElements; ++i) {
        const float mean = (state_[r][i] + data[r][i] + (state_[peer][i] + data[peer][i])) / 2;
        results[r][i] = static_cast<float>(ranks) * (mean - state_[r][i]);
      }
    }
    for (int r = 0; r < ranks; ++r) {
      for (std::size_t i = 0; i < kElements; ++i) {
        state_[r][i] += results[r][i] / static_cast<float>(ranks);
      }
    }
    return results;
  }

 private:
  Vectors state_;
  int step_ = 0;
};

struct RelaxedRun {
  static constexpr int kRanks = 4, kBefore = 30, kDrain = 60;

  RelaxedRun() {
    DsSync job(kRanks);
    for (int step = 0; step < kBefore; ++step) job.all_reduce(data_of(gradients, 99, kRanks));
    for (int step = 0; step < kSteps + kDrain; ++step) {
      const Vectors results = job.all_reduce(
          step < kSteps ? data_of(gradients, 1000 + static_cast<unsigned>(step), kRanks)
                        : zeros(kRanks));
      differs = differs || results[0] != results[1];
      for (int r = 0; r < kRanks; ++r) windows[r].add(results[r].data());
    }
  }

  std::size_t wrong() const {
    std::vector<double> sums(kElements), weights(kElements);
    for (const Window& window : windows) {
      for (std::size_t i = 0; i < kElements; ++i) {
        sums[i] += window.sum()[i];
        weights[i] += window.weight()[i];
      }
    }
    std::vector<double> before = inputs_of(gradients, 99, 1, kRanks, 0, kElements).most;
    for (double& number : before) number *= kBefore;
    return wrong_relaxed(sums, weights, windows[0].calls(),
                         inputs_of(gradients, 1000, kSteps, kRanks, 0, kElements), before, kRanks,
                         float32_spacing());
  }

  Gradients gradients;
  std::vector<Window> windows{kRanks, Window(kElements)};
  bool differs = false;
};

TEST(NcclCheck, RelaxedSumsPassThatKeepTheMean) {
  const RelaxedRun run;
  EXPECT_TRUE(run.differs) << "these were exact sums";
  EXPECT_EQ(run.wrong(), 0U);
}

TEST(NcclCheck, OfRelaxedSumsAWrongElementIsSeen) {
  RelaxedRun run;
  std::vector<float> extra(kElements);
  extra[42] = 0.05F;
  run.windows[3].add(extra.data());
  EXPECT_EQ(run.wrong(), 1U);
}

// The mean of a group without a state, which docs/policies.md warns of, keeps the mean; a member
// that takes over the others' mean without having contributed does not.
TEST(NcclCheck, ARelaxedSumThatLeavesARankOutIsSeen) {
  RelaxedRun run;
  std::vector<float> lost(kElements);
  run.gradients.fill(1000, 2, 0, kElements, lost.data());
  for (float& x : lost) x = -x;
  run.windows[2].add(lost.data());
  EXPECT_GT(run.wrong(), kElements / 2);
}

TEST(NcclCheck, DigestsTellOneBitAndAnyLength) {
  std::vector<char> bytes(1001, 1);
  const auto before = digest_of(bytes.data(), bytes.size());
  EXPECT_GE(before, 0);
  for (const std::size_t at : {0UL, 7UL, 500UL, 1000UL}) {
    bytes[at] ^= 1;
    EXPECT_NE(digest_of(bytes.data(), bytes.size()), before) << at;
    bytes[at] ^= 1;
  }
  EXPECT_NE(digest_of(bytes.data(), bytes.size() - 1), before);
  EXPECT_EQ(digest_of(bytes.data(), bytes.size()), before);
}

}  // namespace
}  // namespace riffle::nccl_check_test
