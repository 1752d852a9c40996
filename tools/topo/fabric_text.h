// The network around a machine as text: racks, uplinks, nodes by their rates.
#pragma once

#include <string>

#include "tools/terminal/terminal.h"
#include "topology/fabric/fabric.h"

namespace riffle::tools::topo {

std::string to_text(const Fabric& fabric, const std::string& name, const Colours& colours);

}  // namespace riffle::tools::topo
