// A Machine as NCCL's topology file (NCCL_TOPO_FILE, version 1). Format and required attributes are
// those of NCCL 2.12 to 2.30, src/graph/xml.cc and topo.cc: `cpu` needs numaid, affinity, arch and
// on x86 vendor, familyid, modelid; `pci` needs busid, class, link_speed, link_width; PCIe switches
// stand for themselves by their upstream port; `net` is found by the name of the device and keeps a
// speed given here. What NCCL asks the driver for anyway (sm, NVLinks, GPU Direct) is left to it.
#pragma once

#include <string>
#include <vector>

#include "topology/host/machine.h"

namespace riffle {

// A network device as NCCL sees it.
struct NcclNet {
  std::string name;      // as the plugin's properties say
  std::string pci_path;  // sysfs path of its function; empty: below the first NUMA node
  int speed_mbps = 10'000;
  bool has_collnet = false;
};

std::string to_nccl_xml(const Machine& machine, const std::vector<NcclNet>& nets);

}  // namespace riffle
