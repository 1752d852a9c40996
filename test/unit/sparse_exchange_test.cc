#include "sparse/exchange.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

#include "test/unit/sparse_job.h"
#include "topology/base/check.h"

namespace riffle::sparse {
namespace {

using test::Job;
using test::random_gradients;
using test::Vectors;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_identical(const Vectors& results) {
  for (const auto& result : results) EXPECT_TRUE(same_bits(result, results[0]));
}

// sum of residuals + result = sum of (gradient + old residual), within 2P 2^-24 sum(|g| + |e|).
// Returns the largest error as a part of what is allowed.
double conservation_error(const Vectors& gradients, const Vectors& before, const Vectors& after,
                          const std::vector<float>& result) {
  double worst = 0;
  for (std::size_t j = 0; j < result.size(); ++j) {
    double error = result[j], size = 0;
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      error += double{after[p][j]} - double{gradients[p][j]} - double{before[p][j]};
      size += std::fabs(gradients[p][j]) + std::fabs(before[p][j]);
    }
    const double allowed = 2.0 * static_cast<double>(gradients.size()) * 0x1p-24 * size;
    if (error != 0) worst = std::max(worst, std::fabs(error) / allowed);
  }
  return worst;
}

std::vector<int> divisors(int n) {
  std::vector<int> all;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) all.push_back(d);
  }
  return all;
}

struct Variant {
  const char* name;
  Across across;
  Selection selection;
  Element values;
};
constexpr Variant kVariants[] = {
    {"gathered, exact, float32", Across::kGathered, Selection::kExact, Element::kFloat32},
    {"gathered, reuse, bfloat16", Across::kGathered, Selection::kReuse, Element::kBfloat16},
    {"recursive, exact, float32", Across::kRecursive, Selection::kExact, Element::kFloat32},
    {"recursive, reuse, bfloat16", Across::kRecursive, Selection::kReuse, Element::kBfloat16},
};

std::vector<std::pair<Variant, ResidualPolicy>> conserving() {
  std::vector<std::pair<Variant, ResidualPolicy>> all;
  for (const Variant& variant : kVariants) {
    all.emplace_back(variant, ResidualPolicy::kGlobal);
    all.emplace_back(variant, ResidualPolicy::kPartial);
  }
  return all;
}

bool is_possible(const Variant& variant, int teams) {
  return variant.across == Across::kGathered || (teams & (teams - 1)) == 0;
}

TEST(SparseExchange, MassIsConservedAndAllAgreeBitForBit) {
  std::mt19937 random(1);
  for (int workers = 1; workers <= 17; ++workers) {
    for (const int teams : divisors(workers)) {
      for (const auto& [variant, policy] : conserving()) {
        if (!is_possible(variant, teams)) continue;
        const std::size_t elements = 700 + static_cast<std::size_t>(workers);
        Job job({workers, teams, elements, 0.02},
                {.across = variant.across,
                 .selection = variant.selection,
                 .residual = policy,
                 .values = variant.values},
                random());
        for (int step = 0; step < 4; ++step) {
          const Vectors gradients = random_gradients(random, workers, elements);
          const Vectors before = job.residuals();
          const Vectors results = job.all_reduce(gradients);
          expect_identical(results);
          EXPECT_LE(conservation_error(gradients, before, job.residuals(), results[0]), 1.0)
              << workers << " workers, " << teams << " teams, " << variant.name << ", step "
              << step;
          EXPECT_FALSE(job.exchanges[0].has_non_finite());
        }
      }
    }
  }
}

TEST(SparseExchange, WhatIsDeliveredIsTheSumWhereEverythingFits) {
  std::mt19937 random(2);
  for (const auto& [workers, teams] : {std::pair{5, 1}, {6, 2}, {8, 4}, {3, 3}}) {
    for (const Across across : {Across::kGathered, Across::kRecursive}) {
      if (across == Across::kRecursive && teams == 3) continue;
      Job job({workers, teams, 300, 1.0}, {.across = across});
      Vectors gradients = random_gradients(random, workers, 300);
      for (auto& g : gradients) {
        for (float& x : g) x = std::round(x * 8);  // sums of these are exact in any order
      }
      const Vectors results = job.all_reduce(gradients);
      std::vector<float> sum(300), left(300);
      for (const auto& g : gradients) {
        for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += g[j];
      }
      for (const auto& e : job.residuals()) {
        for (std::size_t j = 0; j < left.size(); ++j) left[j] += e[j];
      }
      EXPECT_EQ(results[0], sum);
      // What cancelled on the way stays where it did.
      EXPECT_EQ(left, std::vector<float>(300));
    }
  }
}

TEST(SparseExchange, MessagesAndEntriesAreThePredictedOnes) {
  std::mt19937 random(3);
  for (int workers = 2; workers <= 17; ++workers) {
    for (const int teams : divisors(workers)) {
      for (const Across across : {Across::kGathered, Across::kRecursive}) {
        if (across == Across::kRecursive && (teams & (teams - 1)) != 0) continue;
        const std::size_t elements = 100 * static_cast<std::size_t>(workers) * 4;
        Job job({workers, teams, elements, 0.01}, {.across = across});
        std::vector<std::uint64_t> offers;
        for (const ChunkState& state : job.states) offers.push_back(state.offer.entries());
        job.all_reduce(random_gradients(random, workers, elements));
        const std::uint64_t k = job.layout.budget();
        ASSERT_EQ(k, elements / 100);
        for (int p = 0; p < workers; ++p) {
          const Traffic sent = job.exchanges[p].traffic();
          const Traffic formula = predicted(job.layout, across, p, offers[p]);
          EXPECT_EQ(sent.messages, formula.messages);
          if (teams == 1 || across == Across::kRecursive) {
            EXPECT_EQ(sent, formula) << workers << " workers, " << teams << " teams";
          } else {  // the union may come out below the budget: less to gather
            EXPECT_LE(sent.entries, formula.entries);
            EXPECT_GE(sent.entries + k, formula.entries);
          }
          if (teams == 1) {  // 4k(P-1)/P words
            EXPECT_EQ(2 * sent.entries * workers, 4 * k * (workers - 1));
          }
        }
      }
    }
  }
}

TEST(SparseExchange, EveryInstructionSetGivesTheSameBits) {
  std::vector<float> first;
  for (const Isa isa : kIsas) {
    if (!is_available(isa)) continue;
    std::mt19937 random(4);
    Job job({6, 2, 50000, 0.01}, {.values = Element::kBfloat16, .isa = isa});
    Vectors results;
    for (int step = 0; step < 3; ++step) {
      results = job.all_reduce(random_gradients(random, 6, 50000));
    }
    if (first.empty()) first = results[0];
    EXPECT_TRUE(same_bits(first, results[0])) << name_of(isa);
  }
}

TEST(SparseExchange, InfinitiesComeThroughAndLeaveNoTrace) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::mt19937 random(5);
  for (const auto& [workers, teams] : {std::pair{1, 1}, {5, 1}, {6, 3}, {8, 4}}) {
    for (const Variant& variant : kVariants) {
      for (const ResidualPolicy policy : {ResidualPolicy::kGlobal, ResidualPolicy::kPartial,
                                          ResidualPolicy::kLocal, ResidualPolicy::kEf21}) {
        if (!is_possible(variant, teams)) continue;
        constexpr std::size_t kElements = 2000;
        Job job({workers, teams, kElements, 0.005}, {.across = variant.across,
                                                     .selection = variant.selection,
                                                     .residual = policy,
                                                     .values = variant.values});
        job.all_reduce(random_gradients(random, workers, kElements));
        const Vectors residuals = job.residuals();
        const ChunkState state = job.states[0];
        Vectors gradients = random_gradients(random, workers, kElements);
        // More of them than any budget holds, and one pair that cancels to NaN.
        for (std::size_t j = 100; j < 400; ++j)
          gradients[j % workers][j] = j % 2 == 0 ? kInf : -kInf;
        gradients[workers - 1][1500] = std::nanf("");
        if (workers > 1) gradients[0][101] = kInf, gradients[1][101] = -kInf;
        const Vectors results = job.all_reduce(gradients);
        expect_identical(results);
        for (std::size_t j = 0; j < kElements; ++j) {
          double dense = 0;
          for (const auto& g : gradients) dense += g[j];
          if (std::isnan(dense)) {
            EXPECT_TRUE(std::isnan(results[0][j])) << j;
          } else if (std::isinf(dense)) {
            EXPECT_EQ(results[0][j], dense) << j;
          } else {
            EXPECT_TRUE(std::isfinite(results[0][j])) << j;
            if (policy != ResidualPolicy::kEf21) {
              EXPECT_EQ(results[0][j], 0.0F);
            }
          }
        }
        for (const Exchange& exchange : job.exchanges) EXPECT_TRUE(exchange.has_non_finite());
        EXPECT_EQ(job.residuals(), residuals);
        EXPECT_EQ(job.states[0].momentum, state.momentum);
        EXPECT_EQ(job.states[0].delivered, state.delivered);
        EXPECT_EQ(job.states[0].offer.entries(), state.offer.entries());
        // The next call is none the worse.
        const Vectors later = random_gradients(random, workers, kElements);
        const Vectors after = job.all_reduce(later);
        if (policy == ResidualPolicy::kGlobal) {
          EXPECT_LE(conservation_error(later, residuals, job.residuals(), after[0]), 1.0);
        }
      }
    }
  }
}

TEST(SparseExchange, AnOverflowOfFiniteNumbersIsAnInfinityToo) {
  Job job({4, 1, 400, 0.01}, {});
  Vectors gradients(4, std::vector<float>(400, 0.5F));
  for (auto& g : gradients) g[7] = 3e38F;
  const Vectors results = job.all_reduce(gradients);
  EXPECT_TRUE(std::isinf(results[0][7]));
  expect_identical(results);
  for (const auto& e : job.residuals()) EXPECT_EQ(e, std::vector<float>(400, 0.0F));
}

TEST(SparseExchange, ThereIsOneNan) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float canonical = std::numeric_limits<float>::quiet_NaN();
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  EXPECT_EQ(bits(plus(kInf, -kInf)), bits(canonical));
  EXPECT_EQ(bits(plus(1, std::nanf("77"))), bits(canonical));
  EXPECT_EQ(bits(plus(-std::nanf("77"), 1)), bits(canonical));
}

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

TEST(SparseExchange, WhatCancelsIsNotSentAndNotLost) {
  // 3 and -3 meet at worker 0: nothing of element 0 is left to deliver, and nothing to keep.
  for (const double density : {0.5, 1.0}) {  // sparse and dense blocks
    Job job({2, 1, 4, density}, {});
    const Vectors results = job.all_reduce({{3, 1, 0, 0}, {-3, 0, 2, 2}});
    expect_identical(results);
    EXPECT_EQ(results[0][0], 0.0F);
    EXPECT_EQ(job.states[0].residual[0] + job.states[1].residual[0], 0.0F);
  }
  // Offers of two teams that cancel in the merge.
  for (const Across across : {Across::kGathered, Across::kRecursive}) {
    Job job({2, 2, 4, 1.0}, {.across = across});
    EXPECT_EQ(job.all_reduce({{8, 1, 0, 0}, {-8, 0, 0, 0}})[1][0], 0.0F);
    EXPECT_EQ(job.states[0].residual[0] + job.states[1].residual[0], 0.0F);
  }
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

TEST(SparseExchange, ARefusedMessageLeavesTheStateAsItWas) {
  std::mt19937 random(8);
  Job job({3, 1, 600, 0.02}, {});
  job.all_reduce(random_gradients(random, 3, 600));
  const Vectors before = job.residuals();
  const Vectors gradients = random_gradients(random, 3, 600);
  job.exchanges[0].begin(job.states[0], gradients[0].data(), Element::kFloat32, 9);
  const std::vector<std::uint8_t> nonsense(40, 1);
  const Status status = job.exchanges[0].receive(nonsense);
  EXPECT_EQ(status.code(), Code::kRemote);
  EXPECT_NE(status.message().find("from position 1 in step 0"), std::string::npos)
      << status.message();
  EXPECT_EQ(job.residuals(), before);
  job.sequence = 20;
  const Vectors results = job.all_reduce(gradients);  // the same objects serve again
  EXPECT_LE(conservation_error(gradients, before, job.residuals(), results[0]), 1.0);
}

TEST(SparseExchange, NarrowGradientsAreWidenedAndResultsRounded) {
  std::mt19937 random(9);
  for (const Element element : {Element::kFloat16, Element::kBfloat16}) {
    std::vector<float> gradient = random_gradients(random, 1, 800)[0];
    std::vector<std::uint16_t> stored(800), out(800), expected(800);
    for (std::size_t j = 0; j < 800; ++j) {
      store(stored.data(), element, j, gradient[j]);
      gradient[j] = load(stored.data(), element, j);
    }
    Job narrow({1, 1, 800, 0.05}, {});
    Job wide({1, 1, 800, 0.05}, {});
    const Vectors result = wide.all_reduce({gradient});
    narrow.exchanges[0].begin(narrow.states[0], stored.data(), element, 1);
    narrow.exchanges[0].write_result(out.data(), element);
    for (std::size_t j = 0; j < 800; ++j) store(expected.data(), element, j, result[0][j]);
    EXPECT_EQ(out, expected);
    EXPECT_EQ(narrow.residuals(), wide.residuals());
  }
}

TEST(SparseExchange, BadOptionsAreRefusedByName) {
  const Layout layout({6, 3, 100, 0.1});
  EXPECT_NE(validate(layout, {.across = Across::kRecursive}).message().find("teams is 3"),
            std::string::npos);
  EXPECT_NE(validate(layout, {.values = Element::kFloat16}).message().find("values is float16"),
            std::string::npos);
  EXPECT_NE(validate(layout, {.momentum_rate = 0}).message().find("momentum rate is 0"),
            std::string::npos);
  EXPECT_TRUE(validate(layout, {}).is_ok());
}

}  // namespace
}  // namespace riffle::sparse
