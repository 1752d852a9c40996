#include "sparse/schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "sparse/h_controller.h"
#include "topology/base/check.h"

namespace riffle::sparse::sparse_schedule_test {
namespace {

Layout layout_of(int workers, int teams, std::uint64_t elements = 12000, double density = 0.01) {
  return Layout({workers, teams, elements, density});
}

TEST(SparseLayout, BlocksCoverTheChunkAndNoBudgetIsZero) {
  for (const int workers : {1, 2, 3, 7, 16, 17}) {
    for (const std::uint64_t elements : {0, 1, 5, 100, 1001, 262144}) {
      const Layout layout = layout_of(workers, 1, elements, 0.001);
      std::uint64_t next = 0;
      for (int b = 0; b < layout.team_size(); ++b) {
        EXPECT_EQ(layout.begin_of(b), next);
        next += layout.size_of(b);
        EXPECT_EQ(layout.budget_of(b) == 0, layout.size_of(b) == 0);
        EXPECT_LE(layout.budget_of(b), layout.size_of(b));
        EXPECT_LE(layout.size_of(b), elements / workers + 1);
      }
      EXPECT_EQ(next, elements);
    }
  }
  EXPECT_EQ(layout_of(8, 2).budget_of(3), 30U);  // k d / P
}

TEST(SparseLayout, BadShapesAreRefusedByName) {
  const auto problem = [](const Shape& shape) { return validate(shape).message(); };
  EXPECT_NE(problem({.workers = 0}).find("workers is 0"), std::string::npos);
  EXPECT_NE(problem({.workers = 6, .teams = 4}).find("teams is 4"), std::string::npos);
  EXPECT_NE(problem({.elements = 1ULL << 40}).find("elements is"), std::string::npos);
  EXPECT_NE(problem({.density = 0}).find("density is"), std::string::npos);
  EXPECT_NE(problem({.density = 1.01}).find("density is"), std::string::npos);
  EXPECT_NE(problem({.density = std::stod("nan")}).find("density is"), std::string::npos);
}

TEST(SparseSchedule, SixWorkersAsPublished) {
  const std::vector<Step> steps = schedule(layout_of(6, 1), Across::kGathered, 0);
  ASSERT_EQ(steps.size(), 6U);
  EXPECT_EQ(steps[0], (Step{Phase::kReduceScatter, 4, 2, {4, 5}, {0, 1}}));
  EXPECT_EQ(steps[1], (Step{Phase::kReduceScatter, 2, 4, {2, 3}, {0, 1}}));
  EXPECT_EQ(steps[2], (Step{Phase::kReduceScatter, 1, 5, {1}, {0}}));
  EXPECT_EQ(steps[3], (Step{Phase::kAllGather, 5, 1, {0}, {1}}));
  EXPECT_EQ(steps[4], (Step{Phase::kAllGather, 4, 2, {0, 1}, {2, 3}}));
  EXPECT_EQ(steps[5], (Step{Phase::kAllGather, 2, 4, {0, 1}, {4, 5}}));
}

TEST(SparseSchedule, EveryMessageIsExpectedByItsReceiver) {
  for (int workers = 1; workers <= 34; ++workers) {
    for (int teams = 1; teams <= workers; ++teams) {
      if (workers % teams != 0) continue;
      for (const Across across : {Across::kGathered, Across::kRecursive}) {
        if (across == Across::kRecursive && (teams & (teams - 1)) != 0) continue;
        const Layout layout = layout_of(workers, teams);
        std::vector<std::vector<Step>> all;
        for (int p = 0; p < workers; ++p) all.push_back(schedule(layout, across, p));
        for (int p = 0; p < workers; ++p) {
          ASSERT_EQ(all[p].size(), predicted(layout, across, p, 1).messages);
          for (std::size_t s = 0; s < all[p].size(); ++s) {
            const Step& mine = all[p][s];
            const Step& theirs = all[mine.to][s];
            EXPECT_NE(mine.to, p);
            EXPECT_EQ(theirs.from, p);
            EXPECT_EQ(theirs.phase, mine.phase);
            EXPECT_EQ(theirs.receive, mine.send);
          }
        }
      }
    }
  }
}

TEST(SparseSchedule, CountsAreTheFormulas) {
  const std::uint64_t n = 720720, k = 7207;  // every P up to 16 divides n
  for (int workers = 2; workers <= 16; ++workers) {
    const Traffic flat = predicted(layout_of(workers, 1, n), Across::kGathered, 0, 0);
    EXPECT_EQ(flat.messages, static_cast<std::uint64_t>(2 * ceil_log2(workers)));
    const double words = 2.0 * static_cast<double>(flat.entries);
    const double formula = 4.0 * k * (workers - 1) / workers;
    EXPECT_NEAR(words / formula, 1.0, 1.0 * workers / k);  // budgets are whole numbers
  }
  const Traffic recursive = predicted(layout_of(16, 4, 1600000), Across::kRecursive, 5, 0);
  EXPECT_EQ(recursive.messages, 2U * 2 + 2);  // k = 16000: 2k (P-d)/P + k (d/P) log2 d
  EXPECT_EQ(recursive.entries, 2U * 16000 * 12 / 16 + 16000U * 4 / 16 * 2);
  const Traffic gathered = predicted(layout_of(14, 7, 1400000), Across::kGathered, 5, 1234);
  EXPECT_EQ(gathered.messages, 2U * 1 + 3);
  EXPECT_EQ(gathered.entries, 2U * 14000 * 7 / 14 + 6 * 1234U);
  EXPECT_THROW(schedule(layout_of(6, 3), Across::kRecursive, 0), InvariantBroken);
}

// Teams agree on some of their entries: the union of d offers of h is between h and d h.
TEST(SparseController, SettlesWhereTheUnionIsTheBudget) {
  for (const int teams : {2, 3, 4, 7, 16}) {
    for (const double overlap : {0.0, 0.3, 0.7, 1.0}) {
      constexpr std::uint64_t kBudget = 1000;
      HController controller(kBudget, teams);
      double sum = 0;
      int counted = 0;
      for (int call = 0; call < 600; ++call) {
        const auto h = static_cast<double>(controller.entries());
        const double all = h * (1 + (teams - 1) * (1 - overlap));
        EXPECT_GE(h, kBudget / static_cast<std::uint64_t>(teams));
        EXPECT_LE(h, kBudget);
        controller.observe(static_cast<std::uint64_t>(all));
        if (call >= 300) {
          sum += std::min(all, 1e9);
          ++counted;
        }
      }
      EXPECT_NEAR(sum / counted / kBudget, 1.0, 0.1) << teams << " teams, overlap " << overlap;
    }
  }
}

// A hundredth of the way per call would take a hundred calls.
TEST(SparseController, SpeedsUpWhereItHasFarToGo) {
  HController controller(100000, 2);
  EXPECT_EQ(controller.entries(), 50000U);
  for (int call = 0; call < 16; ++call) controller.observe(controller.entries());
  EXPECT_EQ(controller.entries(), 100000U);
}

}  // namespace
}  // namespace riffle::sparse::sparse_schedule_test
