// The published schemes give what they should, lose nothing on the way without saying so, and send
// what the formulas say.
#include "bench/sparse/scheme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <tuple>

#include "sparse/layout.h"
#include "sparse/schedule.h"
#include "test/bench/scheme_job.h"

namespace riffle::bench::sparse_schemes_test {
namespace {

class Workers : public ::testing::TestWithParam<int> {
 protected:
  Vectors gradients(std::uint64_t elements = 12000) {
    return random_gradients(random_, GetParam(), elements);
  }
  std::uint64_t k() const { return shape().kept(); }
  SchemeShape shape() const { return shape_of(GetParam()); }
  std::uint64_t p() const { return static_cast<std::uint64_t>(GetParam()); }
  std::uint64_t log_p() const { return static_cast<std::uint64_t>(sparse::ceil_log2(GetParam())); }
  std::mt19937 random_{7};
};
INSTANTIATE_TEST_SUITE_P(Counts, Workers, ::testing::Values(2, 3, 5, 6, 7, 8, 14, 16, 17));

TEST_P(Workers, TopkA) {
  Job job("topka", shape());
  for (int call = 0; call < 2; ++call) {
    const Vectors g = gradients();
    const Vector result = job.all_reduce(g);
    expect_same_sum(result, top_k(sum_of(selected(g, k())), k()));
    expect_conserved(job, g, result);
    for (const auto& scheme : job.schemes) {
      EXPECT_EQ(scheme->sent().messages, log_p());
      EXPECT_EQ(scheme->sent().entries, k() * (p() - 1));
      EXPECT_EQ(scheme->formula().messages, log_p());
      EXPECT_EQ(scheme->formula().most_entries, k() * (p() - 1));
      EXPECT_EQ(scheme->result_entries(), k());
    }
  }
}

TEST_P(Workers, TopkDsa) {
  Job job("topkdsa", shape());
  for (int call = 0; call < 2; ++call) {
    const Vectors g = gradients();
    const Vectors mine = selected(g, k());
    const Vector result = job.all_reduce(g);
    expect_same_sum(result, top_k(sum_of(mine), k()));
    expect_conserved(job, g, result);
    const sparse::Layout regions({GetParam(), 1, g[0].size(), 0.01});
    const auto within = [&](const Vector& v, int region) {
      return count_of({v.begin() + static_cast<std::ptrdiff_t>(regions.begin_of(region)),
                       v.begin() + static_cast<std::ptrdiff_t>(regions.begin_of(region + 1))});
    };
    const Vector sum = sum_of(mine);
    for (int r = 0; r < GetParam(); ++r) {
      // All slices but the own one; then, of the sums, all but what is the receiver's in the end.
      std::uint64_t entries = k() - within(mine[static_cast<std::size_t>(r)], r);
      for (int gap = 1; gap < GetParam(); gap *= 2) {
        for (int i = 0; i < std::min(gap, GetParam() - gap); ++i) {
          entries += within(sum, (r + i) % GetParam());
        }
      }
      const Scheme& scheme = *job.schemes[static_cast<std::size_t>(r)];
      EXPECT_EQ(scheme.sent().entries, entries);
      EXPECT_EQ(scheme.sent().messages, p() - 1 + log_p());
      EXPECT_EQ(scheme.formula().messages, p() - 1 + log_p());
    }
  }
}

// The bounds of the literature, which are averages over the workers.
TEST_P(Workers, TopkDsaStaysWithinItsBounds) {
  for (const bool are_equal : {true, false}) {
    Vectors g = gradients();
    if (are_equal) std::ranges::fill(g, g[0]);
    Job job("topkdsa", shape());
    (void)job.all_reduce(g);
    std::uint64_t entries = 0;
    for (const auto& scheme : job.schemes) entries += scheme->sent().entries;
    const Formula formula = job.schemes[0]->formula();
    if (are_equal) {
      EXPECT_EQ(entries, 2 * k() * (p() - 1));  // 2k(P-1)/P each
    } else {
      EXPECT_GT(entries, formula.least_entries * p());
    }
    EXPECT_LE(entries, formula.most_entries * p() + p());
  }
}

// Level by level as the tree does it.
TEST_P(Workers, GTopk) {
  Job job("gtopk", shape());
  for (int call = 0; call < 2; ++call) {
    const Vectors g = gradients();
    Vectors sums = selected(g, k());
    for (std::size_t gap = 1; gap < sums.size(); gap *= 2) {
      for (std::size_t r = 0; r + gap < sums.size(); r += 2 * gap) {
        sums[r] = top_k(sum_of({sums[r], sums[r + gap]}), k());
      }
    }
    const Vector result = job.all_reduce(g);
    EXPECT_EQ(result, sums[0]);
    expect_conserved(job, g, result);
    std::uint64_t messages = 0;
    for (const auto& scheme : job.schemes) {
      messages += scheme->sent().messages;
      EXPECT_EQ(scheme->sent().entries, k() * scheme->sent().messages);
      EXPECT_LE(scheme->sent().messages, log_p() + 1);
    }
    EXPECT_EQ(messages, 2 * (p() - 1));  // everybody is sent up once, and told once
    EXPECT_EQ(job.schemes[0]->sent().messages, log_p());
    EXPECT_EQ(job.schemes[0]->formula().messages, log_p());
    EXPECT_EQ(job.schemes[0]->formula().most_entries, k() * log_p());
  }
}

TEST_P(Workers, OkTopk) {
  Job job("oktopk", shape());
  const Vectors first = gradients();
  const Vector exact = job.all_reduce(first);
  expect_same_sum(exact, top_k(sum_of(selected(first, k())), k()));
  expect_conserved(job, first, exact);
  // The same again: thresholds that are reused select the same.
  EXPECT_EQ(job.all_reduce(first), exact);
  expect_conserved(job, first, exact);
  for (const auto& scheme : job.schemes) {
    EXPECT_EQ(scheme->sent().messages, p() - 1 + 2 * log_p());
    EXPECT_EQ(scheme->formula().messages, p() - 1 + 2 * log_p());
    EXPECT_EQ(scheme->result_entries(), k());
  }
  for (int call = 0; call < 3; ++call) {
    const Vectors g = gradients();
    const Vector result = job.all_reduce(g);
    expect_conserved(job, g, result);
    EXPECT_GT(3 * count_of(result), k());
    EXPECT_LT(count_of(result), 3 * k());
    for (const auto& scheme : job.schemes) {
      EXPECT_EQ(scheme->result_entries(), count_of(result));
    }
  }
}

// With the same gradient everywhere and regions to match, every worker sends the least there is.
TEST_P(Workers, OkTopkSendsTheLeastWhereSupportsAreEqual) {
  Vectors g = gradients();
  std::ranges::fill(g, g[0]);
  Job job("oktopk", shape());
  (void)job.all_reduce(g);
  (void)job.all_reduce(g);
  std::uint64_t entries = 0;
  for (const auto& scheme : job.schemes) entries += scheme->sent().entries;
  EXPECT_EQ(entries, 2 * k() * (p() - 1));  // k(P-1)/P to owners, as much to gather
  EXPECT_LE(job.schemes[0]->formula().least_entries * p(), entries);
  EXPECT_GE(job.schemes[0]->formula().most_entries * p() + p(), entries);
}

// All that counts moves into one region: its owner shares out what it has before the gather.
TEST_P(Workers, OkTopkEvensOutWhatOneWorkerHas) {
  Job job("oktopk", shape());
  Vectors g = gradients();
  (void)job.all_reduce(g);
  for (Vector& v : g) {
    std::ranges::sort(v, [](float a, float b) { return std::fabs(a) > std::fabs(b); });
  }
  const Vector result = job.all_reduce(g);
  expect_conserved(job, g, result);
  std::uint64_t most = 0;
  for (const auto& scheme : job.schemes) most = std::max(most, scheme->sent().messages);
  const std::uint64_t usual = p() - 1 + 2 * log_p();
  if (p() > 4) {
    EXPECT_EQ(most, usual + p() - 1);  // the owner has a piece for everybody
  } else {
    EXPECT_EQ(most, usual);  // one of four workers cannot have over four times the mean
  }
}

TEST_P(Workers, SparDl) {
  Job job("spardl", shape());
  for (int call = 0; call < 2; ++call) {
    const Vectors g = gradients();
    const Vector result = job.all_reduce(g);
    expect_conserved(job, g, result);
    const sparse::Layout layout({GetParam(), 1, g[0].size(), 0.01});
    EXPECT_EQ(count_of(result), layout.budget());
    std::uint64_t most = 0;
    for (const auto& scheme : job.schemes) {
      EXPECT_EQ(scheme->sent().messages, 2 * log_p());
      most = std::max(most, scheme->sent().entries);
    }
    const Formula formula = job.schemes[0]->formula();
    EXPECT_EQ(formula.messages, 2 * log_p());
    EXPECT_EQ(formula.most_entries, most);
    EXPECT_EQ(formula.least_entries, most);
  }
}

// Thresholds of the call before: some more or less, and nothing lost.
TEST_P(Workers, SparDlReusesThresholds) {
  Job job("spardl-reuse", shape());
  std::set<std::uint64_t> counts;  // of results; of exact selections it is one
  for (int call = 0; call < 5; ++call) {
    const Vectors g = gradients();
    const Vector result = job.all_reduce(g);
    expect_conserved(job, g, result);
    for (const auto& scheme : job.schemes) {
      EXPECT_EQ(scheme->sent().messages, scheme->formula().messages);
      EXPECT_GT(scheme->result_entries(), k() / 2) << call;
      EXPECT_LT(scheme->result_entries(), 2 * k()) << call;
      counts.insert(scheme->result_entries());
    }
  }
  EXPECT_GT(counts.size(), 1u);
}

// Teams of ranks that do not stand side by side, as racks may have them.
TEST_P(Workers, SparDlInTeams) {
  for (int teams = 2; teams <= GetParam(); ++teams) {
    if (GetParam() % teams != 0) continue;
    SchemeShape in_teams = shape();
    in_teams.teams = teams;
    in_teams.is_recursive = std::has_single_bit(static_cast<unsigned>(teams));
    for (int t = 0; t < teams; ++t) {
      for (int r = t; r < GetParam(); r += teams) in_teams.order.push_back(r);
    }
    Job job("spardl-teams", in_teams, static_cast<unsigned>(teams));
    const Vectors g = gradients();
    const Vector result = job.all_reduce(g);
    expect_conserved(job, g, result);
    for (const auto& scheme : job.schemes) {
      const Formula formula = scheme->formula();
      EXPECT_EQ(scheme->sent().messages, formula.messages);
      EXPECT_LE(scheme->sent().entries, formula.most_entries);
      // In a first call teams offer the least; what they offer alike leaves the union short of k.
      EXPECT_GT(10 * scheme->sent().entries, 7 * formula.least_entries);
    }
  }
}

TEST_P(Workers, RingsSumEverything) {
  for (const char* name : {"ring", "ring-bf16"}) {
    Job job(name, shape());
    const Vectors g = gradients();
    const Vector result = job.all_reduce(g);
    const Vector sum = sum_of(g);
    const float tolerance = std::string(name) == "ring" ? 1e-5F : 1.0F / 256;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      float size = 0;
      for (const Vector& v : g) size += std::fabs(v[i]);
      ASSERT_LE(std::fabs(result[i] - sum[i]), tolerance * static_cast<float>(p()) * size) << name;
    }
    for (const auto& scheme : job.schemes) {
      EXPECT_EQ(scheme->sent().messages, 2 * (p() - 1));
      EXPECT_GE(scheme->sent().entries, scheme->formula().least_entries);
      EXPECT_LE(scheme->sent().entries, scheme->formula().most_entries);
    }
  }
}

// Where sums fill up, regions travel dense.
TEST(Schemes, TopkDsaGoesDense) {
  std::mt19937 random(3);
  SchemeShape shape = shape_of(8, 4000);
  shape.density = 0.7;
  Job job("topkdsa", shape);
  const Vectors g = random_gradients(random, 8, 4000);
  const Vector result = job.all_reduce(g);
  expect_same_sum(result, top_k(sum_of(selected(g, shape.kept())), shape.kept()));
  expect_conserved(job, g, result);
  const Sent sent = job.schemes[0]->sent();
  EXPECT_LT(sent.bytes, sent.entries * 6);  // 2-byte indices, 4-byte values
}

TEST(Schemes, WrongUseNamesWhatIsAccepted) {
  for (const auto& [name, shape, named] :
       {std::tuple{"topkb", shape_of(4), "topkdsa"},
        std::tuple{"spardl-teams", SchemeShape{.workers = 4, .elements = 100, .teams = 3}, "teams"},
        std::tuple{"topka", SchemeShape{.workers = 4, .elements = 100, .density = 0}, "density"},
        std::tuple{"topka", shape_of(1), "2 workers"}}) {
    const auto scheme = make_scheme(name, shape, 0);
    ASSERT_FALSE(scheme) << name;
    EXPECT_NE(scheme.status().message().find(named), std::string::npos)
        << scheme.status().message();
  }
}

// What another worker sends is never trusted.
TEST(Schemes, AMangledMessageIsRefused) {
  std::mt19937 random(5);
  const Vectors g = random_gradients(random, 2, 1000);
  for (const std::string& name : scheme_names()) {
    SchemeShape shape = shape_of(2, 1000);
    shape.teams = 2;
    std::vector<std::unique_ptr<Scheme>> both;
    for (const int rank : {0, 1}) both.push_back(std::move(*make_scheme(name, shape, rank)));
    for (std::size_t r = 0; r < both.size(); ++r) {
      both[r]->prepare(g[r]);
      both[r]->begin(g[r]);
    }
    if (both[0]->round().from.empty()) continue;  // never the case for rank 0
    const auto sent = both[1]->message(0);
    std::vector<std::uint8_t> bytes(sent.begin(), sent.end());
    bytes.pop_back();
    const std::vector<std::span<const std::uint8_t>> messages = {bytes};
    EXPECT_FALSE(both[0]->take(messages)) << name;
  }
}

}  // namespace
}  // namespace riffle::bench::sparse_schemes_test
