// topology/plan/packing.h: programs with known answers, and optimality by duality on random ones.
#include "topology/plan/packing.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace riffle::packing_test {
namespace {

double worth(const Packing& p, const std::vector<double>& profits) {
  const std::vector<double> x = p.amounts();
  return std::inner_product(x.begin(), x.end(), profits.begin(), 0.0);
}

TEST(Packing, ByHand) {
  Packing p(2);
  p.add({1, 0.5}, 1);
  p.solve(100);
  EXPECT_NEAR(p.amounts()[0], 1, 1e-6);
  p.add({0.25, 1}, 1);  // together 6/7 of the first and 4/7 of the second
  p.solve(100);
  EXPECT_NEAR(p.amounts()[0], 6.0 / 7, 1e-6);
  EXPECT_NEAR(p.amounts()[1], 4.0 / 7, 1e-6);
  p.add({2, 2}, 1);  // worse than either
  p.solve(100);
  EXPECT_EQ(p.amounts()[2], 0);
}

TEST(Packing, NobodyBeatsThePrices) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const std::size_t resources = 1 + random() % 12, columns = 1 + random() % 30;
    Packing p(resources);
    std::vector<double> profits;
    std::vector<std::vector<double>> loads;
    for (std::size_t j = 0; j < columns; ++j) {
      std::vector<double> load(resources);
      for (double& l : load) l = static_cast<double>(random() % 4);
      load[random() % resources] += 1;
      profits.push_back(1 + static_cast<double>(random() % 3));
      p.add(load, profits.back());
      loads.push_back(std::move(load));
      if (random() % 2 == 0) p.solve(1000);
    }
    p.solve(1000);
    const std::vector<double> x = p.amounts(), prices = p.prices();
    for (std::size_t r = 0; r < resources; ++r) {
      double used = 0;
      for (std::size_t j = 0; j < columns; ++j) used += x[j] * loads[j][r];
      EXPECT_LE(used, 1 + 1e-5) << i;
      EXPECT_GE(prices[r], -1e-9) << i;
    }
    for (std::size_t j = 0; j < columns; ++j) {
      const double cost = std::inner_product(prices.begin(), prices.end(), loads[j].begin(), 0.0);
      EXPECT_GE(cost, profits[j] - 1e-6) << i;
    }
    EXPECT_NEAR(worth(p, profits), std::accumulate(prices.begin(), prices.end(), 0.0), 1e-4) << i;
  }
}

}  // namespace
}  // namespace riffle::packing_test
