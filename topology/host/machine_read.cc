#include "topology/host/machine_read.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "topology/host/hwloc_convert.h"
#include "topology/host/hwloc_nics.h"
#include "topology/host/machine_sysfs.h"

namespace riffle {
namespace {

constexpr const char* kSysfs = "/sys";
constexpr std::size_t kLargestFile = std::size_t{16} << 20;

}  // namespace

Result<Machine> read_machine_hwloc() {
  const Result<HwlocTopology> topology = HwlocTopology::of_this_machine();
  if (!topology) return topology.status();
  return machine_of(*topology, "hwloc, API " + topology->library().version());
}

Result<Machine> read_machine() {
  Result<Machine> machine = read_machine_hwloc();
  if (!machine) {
    Result<Machine> plain = read_machine_sysfs();
    if (plain) plain->notes.push_back(machine.status().message() + "; looking at sysfs instead");
    return plain;
  }
  read_nics(kSysfs, *machine);
  read_pci_links(kSysfs, *machine);
  tidy(*machine);
  return machine;
}

Result<Machine> parse_machine_xml(const std::string& xml, const std::string& origin) {
  if (xml.size() > kLargestFile) {
    return invalid_argument(origin + " is larger than " + std::to_string(kLargestFile >> 20) +
                            " MiB: no recorded machine is");
  }
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

Result<Machine> read_machine_xml(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file) {
    return invalid_argument("cannot read the machine file " + path +
                            (errno != 0 ? ": " + std::string(std::strerror(errno)) : ""));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_machine_xml(text, path);
}

Status record_machine(const std::string& path) {
  const Result<HwlocTopology> topology = HwlocTopology::of_this_machine();
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
