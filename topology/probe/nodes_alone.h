// A rack of one node and the node's own link are one and the same: what rounds show as the uplink
// of such a rack is what the node can do, as its other rate may be known too high from rounds in
// which bursts passed. Pure.
#pragma once

#include <vector>

#include "topology/probe/node_rates.h"
#include "topology/probe/rack_search.h"

namespace riffle::probe {

struct NodeLimits {
  std::vector<Uplink> of;  // per node; 0: none

  // True: a rate was higher.
  bool lower(NodeRates* rates) const;
};

NodeLimits limits_of_nodes_alone(const Racks& racks);

}  // namespace riffle::probe
