// Candidate groupings of nodes, from how alike pairs of them look. Pure; parts of rack_search.
#pragma once

#include <vector>

#include "topology/probe/rack_model.h"

namespace riffle::probe {

// Symmetric values of all pairs of nodes; where a pair was never seen the value is kUnknown.
class PairTable {
 public:
  static constexpr double kUnknown = -1;
  explicit PairTable(int nodes)
      : nodes_(nodes), values_(static_cast<std::size_t>(nodes) * static_cast<std::size_t>(nodes)) {}
  double& at(int a, int b) { return values_[index(a, b)]; }
  double at(int a, int b) const { return values_[index(a, b)]; }
  int nodes() const { return nodes_; }

 private:
  std::size_t index(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(nodes_) +
           static_cast<std::size_t>(b);
  }
  int nodes_;
  std::vector<double> values_;
};

// Distance 0..1: how far pairs stay below what both ends can do, loaded rounds counting most.
PairTable distance_by_rate(const RackModel& model);
// Distance in microseconds: the shortest round trip seen.
PairTable distance_by_latency(int nodes, const std::vector<Observed>& all);

// All cuts of the average-linkage tree with 2 to `most` groups, fewest first: rack_of per node.
std::vector<std::vector<int>> average_linkage(const PairTable& distance, int most);

// Correlation clustering: every flow votes for its ends being in one rack, or against it, by how
// likely it is to be held back (Keuper et al., "Efficient Decomposition of Image and Mesh Graphs by
// Lifted Multicuts", ICCV 2015, greedy additive edge contraction; then single nodes move).
std::vector<int> correlation_clusters(const RackModel& model);

// Numbers groups 0.. in the order of their first node; returns how many there are.
int renumber(std::vector<int>* group_of);

}  // namespace riffle::probe
