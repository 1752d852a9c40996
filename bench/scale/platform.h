// The platforms of the scale study, each twice: as SimGrid simulates it, link by link with its
// routing, and as Riffle's planner sees it, nodes and racks with uplinks.
#pragma once

#include <simgrid/s4u/Host.hpp>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle::scale {

struct Platform {
  Fabric fabric;
  std::vector<simgrid::s4u::Host*> hosts;  // by rank
};

// The kinds that build() knows, for messages and loops.
const std::vector<std::string>& platform_kinds();

// Nodes have links of 25 Gbit/s.
//   fat-tree-1, -4, -8   two layers of switches, the uplinks of a rack together carry 1/1, 1/4 or
//                        1/8 of what its nodes do; D-mod-K routing
//   dragonfly            groups joined all to all by a link each; minimal routing. A group is a
//   rack multi-site           four sites on a 10 Gbit/s wide-area link each, 5 ms away from each
//   other
// Needs a simgrid::s4u::Engine, one platform per process. An error names what is accepted.
Result<Platform> build_platform(const std::string& kind, int nodes);

}  // namespace riffle::scale
