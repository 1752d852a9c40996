#include "topology/plan/packing.h"

#include <utility>

#include "topology/base/check.h"

namespace riffle {
namespace {

constexpr double kZero = 1e-11;
// Equal right sides make every step a tie, on which the simplex method may go round in circles;
// tiny differences between them do not.
constexpr double kPerturbation = 1e-8;

}  // namespace

Packing::Packing(std::size_t resources) : resources_(resources) {
  for (std::size_t i = 0; i < resources; ++i) {
    columns_.emplace_back(resources, 0.0)[i] = 1;
    reduced_.push_back(0);
    right_.push_back(1 + kPerturbation * static_cast<double>(i + 1));
    basis_.push_back(i);
  }
}

// The slack columns of the tableau are the inverse of the basis: with them a column from outside
// takes the form it would have had, had it been there from the start.
void Packing::add(std::vector<double> load, double profit) {
  RIFFLE_CHECK(load.size() == resources_, "a load for every resource");
  std::vector<double> column(resources_, 0.0);
  for (std::size_t i = 0; i < resources_; ++i) {
    if (load[i] == 0) continue;
    for (std::size_t row = 0; row < resources_; ++row) {
      column[row] += columns_[i][row] * load[i];
    }
    profit += reduced_[i] * load[i];  // the reduced profit of a slack is minus its price
  }
  columns_.push_back(std::move(column));
  reduced_.push_back(profit);
}

std::size_t Packing::entering() const {
  std::size_t best = columns_.size();
  double most = kZero;
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    if (reduced_[j] > most) {
      most = reduced_[j];
      best = j;
    }
  }
  return best;
}

std::size_t Packing::leaving(std::size_t column) const {
  std::size_t best = resources_;
  double least = 0;
  for (std::size_t row = 0; row < resources_; ++row) {
    const double a = columns_[column][row];
    if (a <= kZero) continue;
    const double steps = right_[row] / a;
    if (best == resources_ || steps < least) {
      least = steps;
      best = row;
    }
  }
  return best;
}

void Packing::pivot(std::size_t row, std::size_t column) {
  const std::vector<double> by = columns_[column];
  const double gain = reduced_[column];
  const auto eliminate = [&](std::vector<double>& values) {
    if (values[row] == 0) return 0.0;
    const double quotient = values[row] / by[row];
    for (std::size_t i = 0; i < resources_; ++i) values[i] -= by[i] * quotient;
    values[row] = quotient;
    return quotient;
  };
  for (std::size_t j = 0; j < columns_.size(); ++j) reduced_[j] -= gain * eliminate(columns_[j]);
  eliminate(right_);
  reduced_[column] = 0;
  basis_[row] = column;
}

void Packing::solve(std::size_t max_pivots) {
  for (std::size_t i = 0; i < max_pivots; ++i) {
    const std::size_t column = entering();
    if (column == columns_.size()) return;
    const std::size_t row = leaving(column);
    RIFFLE_CHECK(row < resources_, "every column loads some resource");
    pivot(row, column);
  }
}

std::vector<double> Packing::amounts() const {
  std::vector<double> x(columns(), 0.0);
  for (std::size_t row = 0; row < resources_; ++row) {
    if (basis_[row] >= resources_ && right_[row] > 0) x[basis_[row] - resources_] = right_[row];
  }
  return x;
}

std::vector<double> Packing::prices() const {
  std::vector<double> prices;
  for (std::size_t i = 0; i < resources_; ++i) prices.push_back(-reduced_[i]);
  return prices;
}

}  // namespace riffle
