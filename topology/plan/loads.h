// Loads: how many units and messages every link carries in one phase of one level, and how many
// every node adds up. Pure counting of what the patterns send (docs/algorithms.md), in exact
// integers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/plan/fabric_view.h"
#include "topology/plan/group_plan.h"

namespace riffle {

struct Load {
  std::uint64_t units = 0;
  std::uint64_t frames = 0;  // messages, one per shard that is sent
  void add(std::uint64_t more_units, std::uint64_t more_frames) {
    units += more_units;
    frames += more_frames;
  }
  bool operator==(const Load&) const = default;
};

struct Loads {
  Loads(std::size_t nodes, std::size_t racks);
  explicit Loads(const FabricView& view);

  std::vector<Load> node_out, node_in;   // by rank
  std::vector<Load> rack_up, rack_down;  // by index in FabricView::racks()

  Loads& operator+=(const Loads& other);
  std::uint64_t most_frames() const;  // sent and received by one node
};

// What all groups of a level put on the links in one phase.
Loads loads_of(const FabricView& view, const Level& level, Phase phase);
// The same where all nodes are in one rack.
Loads loads_of(int nodes, const Level& level, Phase phase);

// What a node adds up in an all-reduce, in units, over all lanes.
struct Added {
  std::uint64_t received = 0;  // of partial sums: each is added once
  std::uint64_t sums = 0;  // of results: each is the sum of its own and of all that arrived for it
};
std::vector<Added> added_up(const PlanSet& plans);  // by rank

// The link that needs longest for its load.
struct Slowest {
  double time_us = 0;
  std::string link;  // e.g. "sending of node h3", "uplink of rack r1"
};
// Time of `bytes` bytes in the whole buffer, and of `header_bytes` for each frame.
Slowest slowest(const FabricView& view, const Loads& loads, double bytes, double header_bytes);

}  // namespace riffle
