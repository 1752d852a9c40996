// What the nodes of a subtree have measured, as one message carries it up.
#pragma once

#include <vector>

#include "plugin/collective/base/byte_io.h"
#include "topology/probe/passive.h"

namespace riffle {

struct NodeRates {
  int rank = 0;
  probe::PassiveReport report;
};

void put_rates(ByteWriter* w, const std::vector<NodeRates>& rates);
// What was cut off shows in the reader; numbers are limited, so that their sums stay in range.
std::vector<NodeRates> get_rates(ByteReader* reader);

}  // namespace riffle
