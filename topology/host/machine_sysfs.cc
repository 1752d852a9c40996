#include "topology/host/machine_sysfs.h"

#include <sys/utsname.h>

#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

#include "topology/host/machine_read.h"
#include "topology/host/sysfs.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using sysfs::attribute;
using sysfs::entries;
using sysfs::non_negative;
using sysfs::number;

// A list the kernel wrote; empty if it is absent or nonsense.
CpuList cpus_in(const fs::path& file) {
  auto cpus = parse_cpu_list(attribute(file));
  return cpus ? std::move(*cpus) : CpuList{};
}

std::int64_t memory_mib(const fs::path& meminfo) {
  std::istringstream first(attribute(meminfo));  // "Node 0 MemTotal:  6383768 kB"
  std::string word;
  std::int64_t kib = 0;
  first >> word >> word >> word >> kib;
  return first && kib > 0 ? kib / 1024 : 0;
}

void read_numa_nodes(const fs::path& folder, Machine& machine) {
  for (const fs::path& entry : entries(folder)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with("node")) continue;
    const auto id = non_negative(name.substr(4));
    if (!id) continue;
    NumaNode node;
    node.id = *id;
    node.cpus = cpus_in(entry / "cpulist");
    node.memory_mib = memory_mib(entry / "meminfo");
    machine.numa_nodes.push_back(std::move(node));
  }
}

int id_of(const fs::path& file) {
  return static_cast<int>(number(attribute(file), 16).value_or(0));
}

PciFunction function_at(const fs::path& folder, PciPath path) {
  PciFunction f;
  f.path = std::move(path);
  f.class_code = id_of(folder / "class");
  f.vendor = id_of(folder / "vendor");
  f.device = id_of(folder / "device");
  f.subsystem_vendor = id_of(folder / "subsystem_vendor");
  f.subsystem_device = id_of(folder / "subsystem_device");
  return f;
}

}  // namespace

void read_processors(const fs::path& root, Machine& machine) {
  read_numa_nodes(root / "devices/system/node", machine);
  std::map<int, int> node_of_cpu;
  for (const NumaNode& node : machine.numa_nodes) {
    for (const int cpu : node.cpus) node_of_cpu.emplace(cpu, node.id);
  }
  const fs::path system = root / "devices/system/cpu";
  std::map<int, int> processor_ids;  // the kernel's to ours, in the order of CPUs
  for (const int cpu : cpus_in(system / "online")) {
    const fs::path topology = system / ("cpu" + std::to_string(cpu)) / "topology";
    CpuList siblings = cpus_in(topology / "thread_siblings_list");
    if (!contains(siblings, cpu)) siblings = {cpu};
    if (siblings.front() != cpu) continue;  // its core is listed already
    const int package = non_negative(attribute(topology / "physical_package_id")).value_or(0);
    const int next = static_cast<int>(processor_ids.size());
    Core core;
    core.processor = processor_ids.emplace(package, next).first->second;
    if (const auto it = node_of_cpu.find(cpu); it != node_of_cpu.end()) core.numa_node = it->second;
    core.cpus = std::move(siblings);
    machine.cores.push_back(std::move(core));
  }
  for (int id = 0; id < static_cast<int>(processor_ids.size()); ++id) {
    machine.processors.push_back({.id = id, .vendor = {}, .model = {}});
  }
  for (NumaNode& node : machine.numa_nodes) {
    for (const Core& core : machine.cores) {
      if (contains(node.cpus, core.cpus.front())) node.processor = core.processor;
    }
  }
}

void read_cpuinfo(const fs::path& cpuinfo, Machine& machine) {
  std::ifstream in(cpuinfo);
  Processor found;
  for (std::string line; std::getline(in, line) && !line.empty();) {  // of the first CPU
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = line.substr(colon + 2);
    if (key == "vendor_id") found.vendor = value;
    if (key == "model name") found.model = value;
    if (key == "cpu family") found.family = non_negative(value).value_or(-1);
    if (key == "model") found.model_number = non_negative(value).value_or(-1);
  }
  for (Processor& p : machine.processors) {
    const int id = p.id;
    p = found;
    p.id = id;
  }
}

void read_pci(const fs::path& root, Machine& machine) {
  constexpr int kNetwork = 0x02;
  for (const fs::path& entry : entries(root / "bus/pci/devices")) {
    std::error_code error;
    const fs::path folder = fs::canonical(entry, error);
    if (error) continue;  // unplugged meanwhile
    const PciPath path = pci_path_of(folder.string());
    if (path.empty()) continue;
    const PciFunction function = function_at(folder, path);
    const bool is_gpu = is_compute_gpu(function);
    if (!is_gpu && function.class_code >> 16 != kNetwork) continue;
    if (is_gpu) {
      Gpu gpu;
      gpu.pci_path = path;
      gpu.vendor = gpu_vendor_name(function.vendor);
      gpu.numa_node = non_negative(attribute(folder / "numa_node"));
      machine.gpus.push_back(std::move(gpu));
    }
    machine.pci.push_back(function);
    fs::path above = folder.parent_path();
    for (PciPath up(path.begin(), path.end() - 1); up.size() > 1; up.pop_back()) {
      machine.pci.push_back(function_at(above, up));
      above = above.parent_path();
    }
  }
}

void read_pci_links(const fs::path& root, Machine& machine) {
  for (PciFunction& f : machine.pci) {
    const fs::path folder = root / "bus/pci/devices" / f.address();
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

void read_nics(const std::string& sysfs, Machine& machine) {
  Result<std::vector<Nic>> nics = list_nics(sysfs);
  if (nics) {
    machine.nics = std::move(*nics);
  } else {
    machine.notes.push_back(nics.status().message());
  }
}

Result<Machine> read_machine_sysfs(const std::string& sysfs) {
  Machine machine;
  machine.source = "sysfs";
  read_processors(sysfs, machine);
  if (sysfs == "/sys") {
    read_cpuinfo("/proc/cpuinfo", machine);
    utsname names{};
    if (::uname(&names) == 0) machine.architecture = names.machine;
  }
  read_pci(sysfs, machine);
  read_pci_links(sysfs, machine);
  read_nics(sysfs, machine);
  if (machine.cores.empty() && machine.nics.empty()) {
    return system_error("this machine: " + sysfs +
                        " shows neither processors nor network interfaces; sysfs has to be "
                        "mounted there");
  }
  tidy(machine);
  return machine;
}

}  // namespace riffle
