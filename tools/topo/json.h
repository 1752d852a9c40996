// The view as JSON: the machine (topology/host/machine_json.h), what Riffle makes of it, the
// network if one is known.
#pragma once

#include <string>

#include "tools/topo/view.h"

namespace riffle::tools::topo {

std::string to_json(const View& view);

}  // namespace riffle::tools::topo
