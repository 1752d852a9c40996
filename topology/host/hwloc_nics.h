// NICs in hwloc topologies: hwloc knows name, address and place; the rest are info attributes that
// `riffle topo --record` adds (machine_read.h lists them). Internal to topology/host.
#pragma once

#include <vector>

#include "topology/host/hwloc_library.h"
#include "topology/host/nics.h"

namespace riffle {

// A NIC from an OS device or from a Misc object of annotate(). Its place (PCI path, NUMA node) is
// the caller's to fill in. Without attributes it counts as up.
Nic recorded_nic(hwloc_obj_t object);
bool is_recorded_nic(hwloc_obj_t object);  // carries annotate()'s attributes

// Adds the attributes to the OS devices of the same names. Interfaces that hwloc does not show
// (bonds, VLANs) become Misc objects below the machine.
void annotate(const HwlocTopology& topology, const std::vector<Nic>& nics);

}  // namespace riffle
