#include "topology/host/machine.h"

#include <algorithm>

namespace riffle {
namespace {

constexpr int kNvidia = 0x10de;
constexpr int kAmd = 0x1002;
constexpr int kIntel = 0x8086;
constexpr int kHabana = 0x1da3;

template <class Items, class Matches>
auto* find_where(const Items& items, Matches matches) {
  const auto it = std::find_if(items.begin(), items.end(), matches);
  return it == items.end() ? nullptr : &*it;
}

void drop_unknown_node(const Machine& machine, const std::string& what,
                       std::optional<int>& numa_node, std::vector<std::string>& notes) {
  if (!numa_node || find_numa_node(machine, *numa_node) != nullptr) return;
  notes.push_back(what + ": NUMA node " + std::to_string(*numa_node) +
                  " does not exist here; taken as unknown");
  numa_node.reset();
}

}  // namespace

const Nic* find_nic(const Machine& machine, const std::string& name) {
  return find_where(machine.nics, [&](const Nic& n) { return n.name == name; });
}

const PciFunction* find_pci(const Machine& machine, const std::string& address) {
  return find_where(machine.pci, [&](const PciFunction& f) { return f.address() == address; });
}

const NumaNode* find_numa_node(const Machine& machine, int id) {
  return find_where(machine.numa_nodes, [&](const NumaNode& n) { return n.id == id; });
}

CpuList cpus_of(const Machine& machine) {
  CpuList cpus;
  for (const Core& core : machine.cores) {
    cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

Place place_of(const Nic& nic) { return {pci_path_of(nic.pci_path), nic.numa_node}; }
Place place_of(const Gpu& gpu) { return {gpu.pci_path, gpu.numa_node}; }

void tidy(Machine& machine) {
  const auto by = [](auto& items, auto key) {
    std::stable_sort(items.begin(), items.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
  };
  std::erase_if(machine.pci, [](const PciFunction& f) { return f.path.empty(); });
  by(machine.processors, [](const Processor& p) { return p.id; });
  by(machine.numa_nodes, [](const NumaNode& n) { return n.id; });
  by(machine.cores,
     [](const Core& c) { return std::pair(c.processor, c.cpus.empty() ? -1 : c.cpus.front()); });
  by(machine.nics, [](const Nic& n) { return n.name; });
  by(machine.gpus, [](const Gpu& g) { return g.pci_path.empty() ? "" : g.pci_path.back(); });
  by(machine.pci, [](const PciFunction& f) { return f.address(); });
  const auto same = [](const PciFunction& a, const PciFunction& b) {
    return a.address() == b.address();
  };
  machine.pci.erase(std::unique(machine.pci.begin(), machine.pci.end(), same), machine.pci.end());
  if (machine.numa_nodes.size() == 1) {  // the kernel says -1 there; everything belongs to it
    const int only = machine.numa_nodes.front().id;
    for (Gpu& gpu : machine.gpus) gpu.numa_node = only;
    for (Nic& nic : machine.nics) {
      if (!nic.is_virtual) nic.numa_node = only;
    }
  }
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    machine.gpus[i].name = "gpu" + std::to_string(i);
    drop_unknown_node(machine, machine.gpus[i].name, machine.gpus[i].numa_node, machine.notes);
  }
  for (Nic& nic : machine.nics) {
    drop_unknown_node(machine, nic.name, nic.numa_node, machine.notes);
    if (!nic.odd_speed.empty()) {
      machine.notes.push_back(nic.name + ": its driver says a speed of '" + nic.odd_speed +
                              "' Mbit/s, which cannot be; taken as unknown");
    }
  }
}

bool is_compute_gpu(const PciFunction& f) {
  const int base = f.class_code >> 16;
  const int subclass = f.class_code >> 8 & 0xff;
  constexpr int kDisplay = 0x03, kProcessing = 0x12;
  constexpr int kVga = 0x00;
  if (base == kDisplay && (f.vendor == kNvidia || f.vendor == kAmd)) return true;
  // Intel's VGA functions are those inside processors; its compute cards are 3D or "other".
  if (base == kDisplay && f.vendor == kIntel) return subclass != kVga;
  return base == kProcessing && !gpu_vendor_name(f.vendor).empty();
}

std::string gpu_vendor_name(int pci_vendor) {
  switch (pci_vendor) {
    case kNvidia:
      return "NVIDIA";
    case kAmd:
      return "AMD";
    case kIntel:
      return "Intel";
    case kHabana:
      return "Habana";
    default:
      return "";
  }
}

}  // namespace riffle
