// The view as one SVG page: NUMA nodes side by side with their cores and cards, the network below.
#pragma once

#include <string>

#include "tools/topo/view.h"

namespace riffle::tools::topo {

std::string to_svg(const View& view);

}  // namespace riffle::tools::topo
