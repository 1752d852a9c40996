// What an all-reduce would take by NCCL's own algorithms, one rank per node: its ring and its pair
// of trees. Both go by the ranks of the nodes, wherever those stand. Their bandwidth is what the
// fabric's links leave them; their latency and the trees' efficiency are those by which NCCL itself
// chooses between them (src/graph/tuning.cc, protocol Simple; the same from 2.23 to 2.30). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "topology/fabric/fabric.h"

namespace riffle {

struct NcclAlgorithm {
  const char* name;       // "ring" or "tree"
  double network_us = 0;  // by the links and the latency
  double moved = 0;       // what the busiest node sends, or receives, as a part of the buffer
};

// `order`: the nodes by rank, if that is not their number. Precondition: the fabric is valid and
// has two nodes at least.
std::array<NcclAlgorithm, 2> nccl_algorithms(const Fabric& fabric, std::uint64_t bytes,
                                             std::span<const int> order = {});

}  // namespace riffle
