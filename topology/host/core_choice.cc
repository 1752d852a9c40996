#include "topology/host/core_choice.h"

#include <algorithm>
#include <set>

namespace riffle {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// The first allowed hardware thread of every core that the job may use.
struct UsableCore {
  int cpu;
  std::optional<int> numa_node;
};

std::vector<UsableCore> usable_cores(const Machine& machine, const CpuList& allowed) {
  std::vector<UsableCore> out;
  for (const Core& core : machine.cores) {
    const CpuList mine = intersection(core.cpus, allowed);
    if (!mine.empty()) out.push_back({mine.front(), core.numa_node});
  }
  return out;
}

std::set<int> nodes_of(const Machine& machine, const std::vector<std::string>& nics) {
  std::set<int> nodes;
  for (const std::string& name : nics) {
    for (const Nic* const nic : hardware_of(machine.nics, name)) {
      if (nic->numa_node) nodes.insert(*nic->numa_node);
    }
  }
  return nodes;
}

std::string names_of(const std::set<int>& nodes) {
  std::string text = nodes.size() == 1 ? "NUMA node " : "NUMA nodes ";
  for (const int node : nodes) {
    text += (node == *nodes.begin() ? "" : ", ") + std::to_string(node);
  }
  return text;
}

}  // namespace

CoreChoice choose_cores(const Machine& machine, const CoreRequest& request) {
  const std::vector<UsableCore> usable = usable_cores(machine, request.allowed);
  const std::string nics = joined(request.nics);
  if (usable.size() < kFewestCores) {
    return {{},
            "the job may use " + std::to_string(usable.size()) +
                " cores, too few to set some "
                "aside (" +
                std::to_string(kFewestCores) + ")"};
  }
  const std::set<int> near = nodes_of(machine, request.nics);
  if (near.empty()) return {{}, "the NUMA node of " + nics + " is not known"};
  CpuList local;
  std::set<int> used_nodes;
  for (const UsableCore& core : usable) {
    if (!core.numa_node) continue;
    used_nodes.insert(*core.numa_node);
    if (near.contains(*core.numa_node)) local.push_back(core.cpu);
  }
  if (local.empty()) {
    return {{}, "the job has no core on " + names_of(near) + ", where " + nics + " is"};
  }
  if (std::includes(near.begin(), near.end(), used_nodes.begin(), used_nodes.end())) {
    return {{}, "all cores of the job are equally near its NICs"};
  }
  std::sort(local.begin(), local.end());
  const std::size_t half = (local.size() + 1) / 2;
  const std::size_t wanted = std::max(half, static_cast<std::size_t>(request.threads));
  if (wanted < local.size()) {
    local.erase(local.begin(), local.end() - static_cast<std::ptrdiff_t>(wanted));
  }
  return {std::move(local), "next to " + nics + " on " + names_of(near)};
}

std::optional<int> choose_memory_node(const Machine& machine, const CoreRequest& request) {
  const std::set<int> near = nodes_of(machine, request.nics);
  if (machine.numa_nodes.size() < 2 || near.size() != 1) return {};
  for (const UsableCore& core : usable_cores(machine, request.allowed)) {
    if (core.numa_node == *near.begin()) return core.numa_node;
  }
  return {};
}

CpuList share_of_thread(const CpuList& cpus, int index, int threads) {
  const auto count = static_cast<std::size_t>(threads);
  if (cpus.size() < count) return cpus;
  CpuList share;
  for (auto i = static_cast<std::size_t>(index) % count; i < cpus.size(); i += count) {
    share.push_back(cpus[i]);
  }
  return share;
}

}  // namespace riffle
