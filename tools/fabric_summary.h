// A network rack by rack, in words: for texts and drawings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle::tools {

// Nodes of one rack and one pair of rates.
struct RateGroup {
  std::int64_t out_kbps = 0, in_kbps = 0;
  std::vector<std::string> names;
};
struct RackSummary {
  std::string name;  // "rack left"
  const RackLink* link = nullptr;
  std::vector<RateGroup> groups;  // the fastest first
  std::int64_t out_kbps = 0;      // of all its nodes together
  int nodes = 0;
  // Its nodes' rate over its uplink's: 1 or less is no bottleneck. 0: no limit.
  double taper = 0;
};
std::vector<RackSummary> summarise(const Fabric& fabric);

// "400 Mbit/s", or "400 Mbit/s out, 100 Mbit/s in".
std::string rates_text(std::int64_t out_kbps, std::int64_t in_kbps);
// "uplink 10 Gbit/s", "uplink no limit".
std::string uplink_text(const RackSummary& rack);
// "2.25:1 oversubscribed"; empty where the uplink is no bottleneck.
std::string taper_text(const RackSummary& rack);
std::string latency_text(const Fabric& fabric);

}  // namespace riffle::tools
