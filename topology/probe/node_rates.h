// From the flows of all rounds to what every node can send and receive.
//
// In a round a node's flows together never exceed its rate, and reach it in the rounds in which
// neither partner nor network is slower. So the rate is the upper end of what was seen, made
// robust: a single value far above all others is an outlier unless the node's other direction says
// the same. Pure.
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

// is_own is left false. `rack_of`: if known, per node; what leaves a rack says less of its ends
// than what stays inside.
NodeRates estimate_node_rates(int nodes, const std::vector<Observed>& all,
                              const std::vector<int>& rack_of = {});

// Rates become at least what nodes did in fans, if both directions say the same, but not more than
// `most_kbps`: what several flows carried at once, wherever they went, a node can do. Where both
// rates are known to be the node's own limit it was a burst.
void raise_to_fans(const std::vector<Observed>& all, double most_kbps, NodeRates* rates);
double fastest_of(const NodeRates& rates);

// Sets is_own where a flow within a rack reached its one end and the other end can do more.
void mark_own_limits(const std::vector<Observed>& all, const std::vector<int>& rack_of,
                     NodeRates* rates);

// The middle of a group of values that say the same: a high group of few rather than a low one of
// many, but not the one value of luck above them. A group of one needs another of its kind in
// `others` (the opposite direction), unless there are hardly any values. Twice as high
// counts for 2^power times as many.
Rate upper_end(std::vector<double> values, const std::vector<double>& others, double power = 5);

}  // namespace riffle::probe
