// BlueConnect (Cho, Finkler, Serrano, Kung, Hunter: "BlueConnect: Decomposing all-reduce for deep
// learning on heterogeneous network hierarchy", MLSys 2019) for two tiers: a ring reduce-scatter
// within each rack, ring all-reduces across the racks among the owners of the same elements, a ring
// all-gather within each rack.
//
// Racks of different sizes: member i of m owns the i-th m-th of the elements, so that the ring
// across racks is one for each stretch between two borders of any rack's shares.
//
// Pure: what every node computes alone fits together.
#pragma once

#include <cstddef>
#include <vector>

#include "lab/nccl_host/work/program.h"

namespace riffle::bench {

using Racks = std::vector<std::vector<int>>;  // nodes by rack; no rack is empty

enum class Kind { kScatter, kAcross, kGather };
inline constexpr Kind kKinds[] = {Kind::kScatter, Kind::kAcross, Kind::kGather};

// One ring, or a part of one, that a node takes part in.
struct Stage {
  Kind kind = Kind::kScatter;
  int from = -1, to = -1;     // the node's neighbours; -1: it has none and only copies
  bool reads_result = false;  // its input is the result's buffer, not the contribution
  std::vector<host::Primitive> primitives;
};

struct Range {
  std::size_t offset = 0, count = 0;  // elements
};

// In order, each after the one before; every node must run its own. Stages of one kind keep the
// order of the chunks, those of different kinds need not wait for other chunks.
std::vector<Stage> blueconnect_stages(const Racks& racks, int node, const Range& chunk,
                                      std::size_t element_bytes);

// Neighbours of all stages of a kind, for connections, each once.
struct Neighbours {
  std::vector<int> receive_from, send_to;
};
Neighbours blueconnect_neighbours(const Racks& racks, int node, Kind kind);

// The largest chunk no step of which is larger than `step` elements.
std::size_t largest_chunk(const Racks& racks, std::size_t step);

}  // namespace riffle::bench
