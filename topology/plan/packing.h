// Packing: a small linear program of the kind
//
//   maximise  sum_j profit_j x_j    subject to  sum_j load_ij x_j <= 1 for every resource i,  x >=
//   0
//
// solved by the primal simplex method (Dantzig), with columns that may be added between solves
// (column generation: Gilmore and Gomory 1961). With profits of 1 and loads in time per buffer, the
// optimum is the most buffers per unit of time that a mixture of strategies can move: x_j / sum x
// is the part of the buffer that strategy j gets.
//
// Deterministic: a fixed order of IEEE operations, ties go to the lower index.
#pragma once

#include <cstddef>
#include <vector>

namespace riffle {

class Packing {
 public:
  explicit Packing(std::size_t resources);

  // Loads by resource, not negative and not all zero. The new column is number columns() - 1.
  void add(std::vector<double> load, double profit);
  std::size_t columns() const { return columns_.size() - resources_; }

  // To optimality, or until `max_pivots` exchanges were made. Goes on where the last call ended.
  void solve(std::size_t max_pivots);

  std::vector<double> amounts() const;  // x, by column
  // What one more unit of each resource would be worth. A column with profit above
  // sum_i price_i load_i would improve the optimum.
  std::vector<double> prices() const;

 private:
  std::size_t entering() const;
  std::size_t leaving(std::size_t column) const;
  void pivot(std::size_t row, std::size_t column);

  std::size_t resources_;
  std::vector<std::vector<double>> columns_;  // the tableau; the slacks come first
  std::vector<double> reduced_;               // profit a column would add, by column
  std::vector<double> right_;                 // values of the basic variables, by row
  std::vector<std::size_t> basis_;            // column, by row
};

}  // namespace riffle
