// What the nodes of a subtree have measured, as one message carries it up.
#pragma once

#include <vector>

#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/engine/busy_account.h"
#include "topology/probe/passive.h"
#include "topology/probe/tomography.h"

namespace riffle {

struct NodeRates {
  int rank = 0;
  probe::PassiveReport report;
  Busy busy;                    // of this node's all-reduces
  std::uint64_t processor = 0;  // percent of the time the node's thread ran, or wanted to
  // Percent of what this communicator moved: that others moved on the same NICs.
  std::uint64_t others = 0;
  std::vector<probe::PairTime> pairs;  // by peer, where they were asked for; else empty
};

void put_rates(ByteWriter* w, const std::vector<NodeRates>& rates);
// What was cut off shows in the reader; numbers are limited, so that their sums stay in range.
std::vector<NodeRates> get_rates(ByteReader* reader);

}  // namespace riffle
