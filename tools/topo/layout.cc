#include "tools/topo/layout.h"

#include <algorithm>

namespace riffle::tools::topo {

std::vector<Side> sides_of(const Machine& machine) {
  using Branches = std::map<std::vector<std::string>, Branch>;
  constexpr int kUnknown = 1 << 30;  // after all others
  std::map<int, Branches> by_node;
  for (const NumaNode& node : machine.numa_nodes) {
    if (!node.cpus.empty()) by_node[node.id];
  }
  const auto branch = [&](std::optional<int> node, const PciPath& path) -> Branch& {
    std::vector<std::string> switches = switches_above(path);
    Branch& found = by_node[node.value_or(kUnknown)][switches];
    found.switches = std::move(switches);
    return found;
  };
  for (const Gpu& gpu : machine.gpus) branch(gpu.numa_node, gpu.pci_path).gpus.push_back(&gpu);
  for (const Nic& nic : machine.nics) {
    if (!nic.is_virtual) branch(nic.numa_node, pci_path_of(nic.pci_path)).nics.push_back(&nic);
  }
  std::vector<Side> sides;
  for (auto& [id, branches] : by_node) {
    Side side;
    side.node = id == kUnknown ? nullptr : find_numa_node(machine, id);
    for (const Core& core : machine.cores) side.cores += core.numa_node == id ? 1 : 0;
    for (auto& [switches, b] : branches) side.branches.push_back(std::move(b));
    sides.push_back(std::move(side));
  }
  return sides;
}

std::vector<const Nic*> virtual_nics(const Machine& machine) {
  std::vector<const Nic*> out;
  for (const Nic& nic : machine.nics) {
    if (nic.is_virtual) out.push_back(&nic);
  }
  return out;
}

}  // namespace riffle::tools::topo
