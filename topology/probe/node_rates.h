// From the flows of all rounds to what every node can send and receive.
//
// In a round a node's flows together never exceed its rate, and reach it in the rounds in which
// neither partner nor network is slower. So the rate is the upper end of what was seen, made
// robust: a single value far above all others is an outlier unless the node's other direction says
// the same, and the values near the upper end are averaged. Pure.
#pragma once

#include <vector>

#include "topology/probe/rounds.h"

namespace riffle::probe {

struct Rate {
  double kbps = 0;        // payload; 0: never measured
  double confidence = 0;  // 0..1: how many measurements agree, and how well
  bool is_own = false;    // a partner that can do clearly more was met: the limit is this node's
};

struct NodeRates {
  std::vector<Rate> out, in;  // per node
};

// is_own is left false.
NodeRates estimate_node_rates(int nodes, const std::vector<Observed>& all);

// Sets is_own where a flow within a rack reached its one end and the other end can do more.
void mark_own_limits(const std::vector<Observed>& all, const std::vector<int>& rack_of,
                     NodeRates* rates);

// The mean of what lies within 8 % of the highest supported value, and its confidence. `others` are
// values of the opposite direction, which may support the highest one but do not enter the mean.
Rate upper_end(std::vector<double> values, const std::vector<double>& others);

}  // namespace riffle::probe
