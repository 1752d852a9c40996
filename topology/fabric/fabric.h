// Fabric: what is known of the network under one communicator, as plain data.
//
// Rates are payload-agnostic link rates in kbit/s (integers, so that every machine plans alike),
// latency is one way in microseconds. Nodes are numbered by their rank in the communicator
// (0..N-1); racks are numbered 0..R-1. A fabric without a file is even: all rates equal, one rack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

inline constexpr int kMaxNodes = 65536;
inline constexpr std::int64_t kMaxLatencyUs = 10'000'000;

struct NodeLink {
  std::string name;           // host name or address, for messages
  std::int64_t out_kbps = 0;  // what the node can send
  std::int64_t in_kbps = 0;   // what the node can receive
  int rack = 0;
  int number = -1;  // where others were left out: its place among all, for messages
};

struct RackLink {
  std::string name;
  std::int64_t up_kbps = 0;    // out of the rack towards the core; 0 = not a limit
  std::int64_t down_kbps = 0;  // from the core into the rack; 0 = not a limit
  int number = -1;             // as a node's
};

struct Fabric {
  std::vector<NodeLink> nodes;
  std::vector<RackLink> racks;   // at least one
  std::int64_t latency_us = 50;  // one way, between any two nodes
  // ... between two of one rack, where that differs: sites far from each other. At most latency_us.
  std::optional<std::int64_t> rack_latency_us;

  int size() const { return static_cast<int>(nodes.size()); }
  std::int64_t latency_us_between(int a, int b) const {
    return rack_latency_us && nodes[a].rack == nodes[b].rack ? *rack_latency_us : latency_us;
  }
};

// N nodes of the same rate in one rack.
Fabric even_fabric(int nodes, std::int64_t rate_kbps);

// ok iff sizes, rack indices and rates make sense; the message names the node or rack.
Status validate(const Fabric& fabric);

}  // namespace riffle
