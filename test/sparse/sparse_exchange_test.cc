// sparse/exchange.h: what comes out of one exchange and what it sends: sums, mass, messages,
// infinities, what is refused.
#include "sparse/exchange.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "test/plugin/collective/sparse/sparse_job.h"

namespace riffle::sparse::sparse_exchange_test {
namespace {

using test::conservation_error;
using test::expect_identical;
using test::Job;
using test::random_gradients;
using test::same_bits;
using test::Vectors;

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
    if (!sparse::is_available(isa)) continue;
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
}  // namespace riffle::sparse::sparse_exchange_test
