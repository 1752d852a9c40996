// Workload: the numbers that the nodes of a scenario add up, and whether a result is right.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/simulation/scenario.h"

namespace riffle::sim {

class Workload {
 public:
  explicit Workload(const Scenario& scenario);

  // What node `rank` contributes to a call.
  void fill(std::size_t call, int rank, std::byte* to) const;
  // Empty if `result` is the sum over all nodes and has the bits that the first node to ask had.
  // Where nodes may be lost: or over one of the `sides`, scaled if the scenario says so.
  std::string check(std::size_t call, int rank, const std::byte* result,
                    const std::vector<std::vector<int>>& sides = {});

 private:
  struct Reference {
    std::vector<double> sum;        // exact
    std::vector<double> magnitude;  // sum of absolute values, where results may be rounded
    std::vector<std::byte> bits;    // of the first result
    int first = -1;                 // the node it came from
    bool is_scaled = false;
  };
  double value(std::size_t call, int rank, std::uint64_t element) const;
  void make(std::size_t call, const std::vector<int>& side);
  std::string compare(std::size_t call, const std::byte* result) const;

  const Scenario& scenario_;
  std::vector<Reference> references_;
};

}  // namespace riffle::sim
