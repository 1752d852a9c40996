#include "topology/host/machine_read.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "topology/host/sysfs.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using sysfs::attribute;
using sysfs::non_negative;

// What PCIe links of the machine can run at; hwloc tells what they run at now, which power saving
// lowers.
void read_pci_links(Machine& machine) {
  for (PciFunction& f : machine.pci) {
    const fs::path folder = fs::path("/sys/bus/pci/devices") / f.address();
    double gtps = 0;  // "16.0 GT/s PCIe"
    std::istringstream(attribute(folder / "max_link_speed")) >> gtps;
    const auto lanes = non_negative(attribute(folder / "max_link_width"));
    constexpr int kMostLanes = 32;  // unconnected ports say 255
    if (gtps > 0 && lanes && *lanes > 0 && *lanes <= kMostLanes) {
      f.lane_gtps = gtps;
      f.lanes = *lanes;
    }
  }
}

}  // namespace

Machine flat_machine(const CpuList& cpus, std::vector<Nic> nics) {
  Machine machine;
  machine.source = "flat machine";
  machine.is_flat = true;
  machine.processors = {{.vendor = {}, .model = {}}};
  machine.numa_nodes = {{.processor = 0, .cpus = cpus}};
  for (const int cpu : cpus) machine.cores.push_back({0, 0, {cpu}});
  machine.nics = std::move(nics);
  tidy(machine);
  return machine;
}

Machine read_machine(const CpuList& cpus) {
  Result<std::vector<Nic>> listed = list_nics();
  const std::vector<Nic> nics = listed ? std::move(*listed) : std::vector<Nic>();
  Result<Machine> seen = read_machine_hwloc(nics, {.library = kHwlocLibrary, .names_cards = true});
  Machine machine = seen ? std::move(*seen) : flat_machine(cpus, nics);
  if (!listed) machine.notes.push_back(listed.status().message());
  if (!seen) {
    machine.notes.push_back(seen.status().message() +
                            "; the machine counts as flat: one NUMA node, GPUs unknown");
  }
  read_pci_links(machine);
  return machine;
}

Result<Machine> read_machine_xml(const std::string& path) {
  constexpr std::size_t kLargestFile = std::size_t{16} << 20;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && !file) {
    return invalid_argument("cannot read the machine file " + path +
                            (errno != 0 ? ": " + std::string(std::strerror(errno)) : ""));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kLargestFile) {
    return invalid_argument(path + " is larger than " + std::to_string(kLargestFile >> 20) +
                            " MiB: no recorded machine is");
  }
  return parse_machine_xml(text, path);
}

}  // namespace riffle
