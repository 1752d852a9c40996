// A network: racks below the core with their uplinks, in them the nodes with their rates.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/draw/legend.h"
#include "topology/fabric/fabric.h"

namespace riffle::tools {

// Above this many nodes names and rates stand in tips and, counted, in the head of the rack.
inline constexpr std::size_t kLabelledNodes = 64;

struct NetworkDiagram {
  const Fabric* fabric;
  std::set<std::string> limits;  // links as the planner calls them: "uplink of rack left"
};

std::vector<LegendEntry> legend_of(const NetworkDiagram& diagram);
// As wide as `svg`; returns the y below it.
double draw_network(Svg& svg, const NetworkDiagram& diagram, double y);

// A node's circle with its rank, in the colour of its rack.
void draw_node(Svg& svg, double x, double y, const Fabric& fabric, int rank,
               const std::string& tip);

}  // namespace riffle::tools
