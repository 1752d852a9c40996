// An hwloc topology as a Machine. Internal to topology/host.
#pragma once

#include <string>

#include "topology/host/hwloc_library.h"
#include "topology/host/machine.h"

namespace riffle {

// Reads what hwloc knows and the info attributes of recorded machines (machine_read.h). Anything
// odd in the topology is left out with a note; it never fails.
Machine machine_of(const HwlocTopology& topology, const std::string& source);

}  // namespace riffle
