// The network around a machine, for `riffle topo`: racks, uplinks, nodes.
#pragma once

#include <string>
#include <vector>

#include "tools/svg.h"
#include "tools/terminal.h"
#include "topology/fabric/fabric.h"

namespace riffle::tools::topo {

// Nodes of one rack and one pair of rates.
struct RateGroup {
  std::int64_t out_kbps = 0, in_kbps = 0;
  std::vector<std::string> names;
};
struct RackSummary {
  const RackLink* link = nullptr;
  std::vector<RateGroup> groups;  // the fastest first
  std::int64_t out_kbps = 0;      // of all its nodes together
  int nodes = 0;
  // Its nodes' rate over its uplink's: 1 or less is no bottleneck. 0: no limit.
  double taper = 0;
};
std::vector<RackSummary> summarise(const Fabric& fabric);

std::string to_text(const Fabric& fabric, const std::string& name, const Colours& colours);

// Draws below `y`; returns the height it took. `svg` has to be `width` wide.
double draw(const Fabric& fabric, const std::string& name, double y, double width, Svg& svg);
double drawn_height(const Fabric& fabric, double width);

}  // namespace riffle::tools::topo
