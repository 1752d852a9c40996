// A fault at every point of a job's progress thread, one per run: the job ends with the right sums
// or with an error on the nodes, in time, and never with anything else.
//
// RIFFLE_TEST_FAULTS: how many points of each kind are tried, evenly spread; or `places`, one of
// every chain of callers; or `all`.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "test/faults/job.h"
#include "test/sanitized.h"

namespace riffle::faults {
namespace {

struct Case {
  const char* name;
  int runs;
  Point point;
  Phase phase;
  bool lasts = false;
  const char* on_loss = "error";
  int nodes = 8;
};

class Sweep : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    setenv("RIFFLE_ON_LOSS", GetParam().on_loss, 1);
    set_up_job();
  }
};

// Which points to try, of those of a survey.
std::vector<std::uint64_t> points_to_try(const std::vector<std::uint64_t>& callers,
                                         int runs_of_ci) {
  const char* const setting = std::getenv("RIFFLE_TEST_FAULTS");
  const std::string wish = setting != nullptr ? setting : std::to_string(cases(runs_of_ci));
  std::vector<std::uint64_t> points;
  std::set<std::uint64_t> seen;
  const std::uint64_t runs = std::max<std::uint64_t>(1, std::strtoull(wish.c_str(), nullptr, 10));
  const std::uint64_t step = wish == "all" ? 1 : std::max<std::uint64_t>(1, callers.size() / runs);
  for (std::uint64_t k = 1; k <= callers.size(); k += wish == "places" ? 1 : step) {
    if (wish == "places" && !seen.insert(callers[k - 1]).second) continue;
    points.push_back(k);
  }
  return points;
}

std::string errors_of(const Outcome& outcome) {
  std::string text;
  for (std::size_t i = 0; i < outcome.errors.size(); ++i) {
    text += "  " + std::to_string(i) + ": " + outcome.errors[i] + "\n";
  }
  return text;
}

TEST_P(Sweep, EndsWithTheRightSumsOrAnError) {
  const Case& c = GetParam();
  const Outcome clean = run_job({c.point, c.phase, 0, false, c.nodes});
  ASSERT_EQ(clean.broken, "");
  for (const std::string& error : clean.errors) ASSERT_EQ(error, "");
  if (clean.points == 0 && c.point == Point::kCheck) GTEST_SKIP() << "no RIFFLE_FAULT_POINTS";
  ASSERT_GT(clean.points, 0u);
  std::uint64_t struck = 0, with_error = 0, named = 0;
  const std::vector<std::uint64_t> points = points_to_try(surveyed(), c.runs);
  for (const std::uint64_t k : points) {
    const Outcome outcome = run_job({c.point, c.phase, k, c.lasts, c.nodes});
    ASSERT_EQ(outcome.broken, "") << "point " << k << " of " << clean.points << "\n"
                                  << errors_of(outcome) << where();
    struck += outcome.has_struck;
    bool has_error = false, is_named = false;
    for (const std::string& error : outcome.errors) {
      has_error = has_error || !error.empty();
      is_named = is_named || error.find("out of memory") != std::string::npos ||
                 error.find("internal error") != std::string::npos;
    }
    with_error += has_error;
    named += is_named;
    if (std::getenv("RIFFLE_TEST_VERBOSE") != nullptr && !is_named) {
      std::printf("point %lu\n%s%s", static_cast<unsigned long>(k), errors_of(outcome).c_str(),
                  where().c_str());
    }
  }
  EXPECT_GT(struck, 0u);
  std::printf(
      "%lu points, %zu tried, %lu struck: %lu jobs with errors, %lu of them name the cause\n",
      static_cast<unsigned long>(clean.points), points.size(), static_cast<unsigned long>(struck),
      static_cast<unsigned long>(with_error), static_cast<unsigned long>(named));
}

INSTANTIATE_TEST_SUITE_P(
    Points, Sweep,
    ::testing::Values(
        Case{"ConnectAllocation", 30, Point::kAllocation, Phase::kConnect},
        Case{"ConnectCheck", 40, Point::kCheck, Phase::kConnect},
        Case{"ConnectNoMemory", 5, Point::kAllocation, Phase::kConnect, true},  // 1.3 s each
        Case{"WorkAllocation", 60, Point::kAllocation, Phase::kWork},
        Case{"WorkCheck", 60, Point::kCheck, Phase::kWork},
        Case{"PairAllocation", 30, Point::kAllocation, Phase::kWork, false, "error", 2},
        Case{"PairCheck", 30, Point::kCheck, Phase::kWork, false, "error", 2},
        Case{"WorkNoMemory", 20, Point::kAllocation, Phase::kWork, true},
        Case{"SurvivorsAllocation", 30, Point::kAllocation, Phase::kWork, false, "continue"},
        Case{"SurvivorsCheck", 30, Point::kCheck, Phase::kWork, false, "continue"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace riffle::faults
