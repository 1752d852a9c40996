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
  std::uint64_t processor = 0;  // percent; processor_percent()
  // Percent of what this communicator moved: that others moved on the same NICs.
  std::uint64_t others = 0;
  std::vector<probe::PairTime> pairs;  // by peer, where they were asked for; else empty
};

// Of the time in which all-reduces ran, for how much of it the node's thread did, or wanted to:
// what a job computes in between does not dilute it. Where none ended, of all the time.
std::uint64_t processor_percent(std::uint64_t wanted_ns, std::uint64_t busy_ns,
                                std::uint64_t elapsed_ns);

void put_rates(ByteWriter* w, const std::vector<NodeRates>& rates);
// What was cut off shows in the reader; numbers are limited, so that their sums stay in range.
std::vector<NodeRates> get_rates(ByteReader* reader);

}  // namespace riffle
