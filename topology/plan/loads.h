// Loads: how many units every link carries in one phase of one level, and how many messages every
// node handles. Pure counting of what the patterns send (docs/algorithms.md), in exact integers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/plan/fabric_view.h"
#include "topology/plan/group_plan.h"

namespace riffle {

enum class Phase { kReduceScatter, kAllGather };

struct Loads {
  explicit Loads(const FabricView& view);

  std::vector<std::uint64_t> node_out, node_in;   // units, by rank
  std::vector<std::uint64_t> rack_up, rack_down;  // units, by index in FabricView::racks()
  std::vector<std::uint64_t> messages;            // sent and received, by rank

  Loads& operator+=(const Loads& other);
};

// What all groups of a level put on the links in one phase.
Loads loads_of(const FabricView& view, const Level& level, Phase phase);

// The link that needs longest for its load.
struct Slowest {
  double time_us = 0;
  std::string link;  // e.g. "sending of node h3", "uplink of rack r1"
};
// Time of `bytes` bytes in the whole buffer.
Slowest slowest(const FabricView& view, const Loads& loads, std::uint64_t bytes);

}  // namespace riffle
