// What machine_read.h promises of hwloc; hwloc_absent.cc is in its place where a build has none.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "topology/host/hwloc_convert.h"
#include "topology/host/hwloc_nics.h"
#include "topology/host/machine_read.h"

namespace riffle {

Result<Machine> read_machine_hwloc(std::vector<Nic> nics, const HwlocChoice& choice) {
  const Result<HwlocTopology> topology = HwlocTopology::of_this_machine(choice);
  if (!topology) return topology.status();
  Machine machine = machine_of(*topology, "hwloc, API " + topology->library().version());
  for (Nic& nic : nics) {
    const Nic* const seen = find_nic(machine, nic.name);
    if (seen != nullptr) nic.numa_node = seen->numa_node;
  }
  machine.nics = std::move(nics);
  tidy(machine);
  return machine;
}

Result<Machine> parse_machine_xml(const std::string& xml, const std::string& origin) {
  const Result<HwlocTopology> topology = HwlocTopology::from_xml(xml, origin);
  if (!topology) return topology.status();
  Machine machine = machine_of(*topology, origin);
  const auto is_told = [](const Nic& n) { return n.mtu > 0 || n.speed_mbps || !n.driver.empty(); };
  if (!machine.nics.empty() && std::none_of(machine.nics.begin(), machine.nics.end(), is_told)) {
    machine.notes.push_back(
        "speed, driver and state of the NICs are not in this file; `riffle topo --record` on that "
        "machine writes them");
  }
  return machine;
}

Status record_machine(const std::string& path) {
  const Result<HwlocTopology> topology =
      HwlocTopology::of_this_machine({.library = kHwlocLibrary, .names_cards = true});
  if (!topology) return topology.status();
  const Result<std::vector<Nic>> nics = list_nics();
  if (!nics) return nics.status();
  annotate(*topology, *nics);
  errno = 0;
  if (topology->library().topology_export_xml(topology->handle(), path.c_str(), 0) != 0) {
    return system_error("cannot write " + path + ": " + std::strerror(errno));
  }
  return Status::ok();
}

}  // namespace riffle
