#include "topology/host/hwloc_convert.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "topology/host/hwloc_nics.h"
#include "topology/host/sysfs.h"

namespace riffle {
namespace {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

std::string address_of(const PciAttributes& pci) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", static_cast<unsigned>(pci.domain),
                static_cast<unsigned>(pci.bus), pci.dev & 0x1fU, pci.func & 0x7U);
  return text;
}

// Walks the tree once, keeping what is above.
class Converter {
 public:
  Converter(const HwlocTopology& topology, Machine& machine)
      : library_(topology.library()), machine_(machine) {}

  void run(hwloc_obj_t root) {
    machine_.architecture = hwloc_info(root, "Architecture");
    visit(root, {});
    finish();
  }

 private:
  struct Above {
    int processor = -1;
    bool is_in_core = false;
    std::optional<int> numa_node;
    PciPath path;
  };

  CpuList list_of(hwloc_const_bitmap_t bits) const {
    CpuList list;
    if (bits == nullptr) return list;
    for (int i = library_.bitmap_next(bits, -1); i >= 0 && i < kMaxCpus;
         i = library_.bitmap_next(bits, i)) {
      list.push_back(i);
    }
    return list;
  }

  // The one NUMA node with CPUs that `object` belongs to; none if there are several.
  std::optional<int> node_of(hwloc_obj_t object, std::optional<int> otherwise) const {
    const CpuList nodes = list_of(object->nodeset);
    if (nodes.size() == 1) return nodes.front();
    if (nodes.empty() || object->parent == nullptr) return otherwise;
    // Fast and slow memory (HBM) of the same processors: nodes of the same CPUs; the first counts.
    for (hwloc_obj_t m = object->memory_first_child; m != nullptr; m = m->next_sibling) {
      if (m->type == HWLOC_OBJ_NUMANODE) return static_cast<int>(m->os_index);
    }
    return otherwise;
  }

  void visit(hwloc_obj_t object, Above above, int depth = 0) {
    constexpr int kDeepest = 256;  // real machines have some 20 levels; the stack is finite
    if (depth > kDeepest) {
      if (!is_too_deep_) machine_.notes.push_back("objects nested too deep are left out");
      is_too_deep_ = true;
      return;
    }
    switch (object->type) {
      case HWLOC_OBJ_PACKAGE:
        above.processor = add_processor(object);
        break;
      case HWLOC_OBJ_NUMANODE:
        add_numa_node(object, above);
        break;
      case HWLOC_OBJ_CORE:
        above.is_in_core = true;
        machine_.cores.push_back(
            {above.processor, node_of(object, above.numa_node), list_of(object->cpuset)});
        break;
      case HWLOC_OBJ_PU:  // where cores are unknown, every hardware thread counts as one
        if (!above.is_in_core) {
          machine_.cores.push_back(
              {above.processor, node_of(object, above.numa_node), list_of(object->cpuset)});
        }
        break;
      case HWLOC_OBJ_BRIDGE:
        enter_bridge(object, above);
        break;
      case HWLOC_OBJ_PCI_DEVICE:
        enter_pci_device(object, above);
        break;
      case HWLOC_OBJ_OS_DEVICE:
        add_os_device(object, above);
        break;
      case HWLOC_OBJ_MISC:
        if (is_recorded_nic(object)) machine_.nics.push_back(recorded_nic(object));
        break;
      default:
        break;
    }
    const bool is_io = object->type == HWLOC_OBJ_BRIDGE || object->type == HWLOC_OBJ_PCI_DEVICE ||
                       object->type == HWLOC_OBJ_OS_DEVICE || object->type == HWLOC_OBJ_MISC;
    if (!is_io) above.numa_node = node_of(object, above.numa_node);
    for (hwloc_obj_t first : {object->memory_first_child, object->first_child,
                              object->io_first_child, object->misc_first_child}) {
      for (hwloc_obj_t child = first; child != nullptr; child = child->next_sibling) {
        visit(child, above, depth + 1);
      }
    }
  }

  int add_processor(hwloc_obj_t object) {
    Processor p;
    p.id = static_cast<int>(object->logical_index);
    p.vendor = hwloc_info(object, "CPUVendor");
    p.model = hwloc_info(object, "CPUModel");
    p.family = sysfs::non_negative(hwloc_info(object, "CPUFamilyNumber")).value_or(-1);
    p.model_number = sysfs::non_negative(hwloc_info(object, "CPUModelNumber")).value_or(-1);
    machine_.processors.push_back(p);
    return p.id;
  }

  void add_numa_node(hwloc_obj_t object, const Above& above) {
    NumaNode node;
    node.id = static_cast<int>(object->os_index);
    node.processor = above.processor;
    if (object->attr != nullptr) {
      node.memory_mib = static_cast<std::int64_t>(object->attr->numanode.local_memory >> 20);
    }
    machine_.numa_nodes.push_back(std::move(node));
  }

  void add_function(const PciAttributes& pci, const PciPath& path) {
    PciFunction f;
    f.path = path;
    f.class_code = pci.class_id << 8;
    f.vendor = pci.vendor_id;
    f.device = pci.device_id;
    f.subsystem_vendor = pci.subvendor_id;
    f.subsystem_device = pci.subdevice_id;
    if (const auto link = pci_link_of_rate(pci.linkspeed)) {
      f.lane_gtps = link->lane_gtps;
      f.lanes = link->lanes;
    }
    functions_.push_back(std::move(f));
  }

  void enter_bridge(hwloc_obj_t object, Above& above) {
    if (object->attr == nullptr) return;
    const auto& bridge = object->attr->bridge;
    if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
      char text[32];
      std::snprintf(text, sizeof text, "pci%04x:%02x",
                    static_cast<unsigned>(bridge.downstream.pci.domain),
                    static_cast<unsigned>(bridge.downstream.pci.secondary_bus));
      above.path = {text};
    } else {
      enter_pci(object, bridge.upstream.pci, above);
    }
  }

  void enter_pci_device(hwloc_obj_t object, Above& above) {
    if (object->attr != nullptr) enter_pci(object, object->attr->pcidev, above);
  }

  void enter_pci(hwloc_obj_t object, const PciAttributes& pci, Above& above) {
    if (above.path.empty()) {  // an export without host bridges
      char text[32];
      std::snprintf(text, sizeof text, "pci%04x:%02x", static_cast<unsigned>(pci.domain),
                    static_cast<unsigned>(pci.bus));
      above.path = {text};
    }
    above.path.push_back(address_of(pci));
    add_function(pci, above.path);
    if (object->type != HWLOC_OBJ_PCI_DEVICE || !is_compute_gpu(functions_.back())) return;
    Gpu gpu;
    gpu.pci_path = above.path;
    gpu.vendor = gpu_vendor_name(pci.vendor_id);
    gpu.model = hwloc_info(object, "PCIDevice");
    gpu.numa_node = above.numa_node;
    machine_.gpus.push_back(std::move(gpu));
  }

  void add_os_device(hwloc_obj_t object, const Above& above) {
    if (object->attr == nullptr || object->name == nullptr) return;
    switch (object->attr->osdev.type) {
      case HWLOC_OBJ_OSDEV_NETWORK: {
        Nic nic = recorded_nic(object);
        nic.is_virtual = above.path.empty();
        nic.numa_node = above.numa_node;
        for (const std::string& hop : above.path) {
          nic.pci_path += (nic.pci_path.empty() ? "/sys/devices/" : "/") + hop;
        }
        machine_.nics.push_back(std::move(nic));
        break;
      }
      case HWLOC_OBJ_OSDEV_OPENFABRICS:
        rdma_.push_back({above.path, object->name});
        break;
      case HWLOC_OBJ_OSDEV_GPU:
      case HWLOC_OBJ_OSDEV_COPROC:
        for (Gpu& gpu : machine_.gpus) {
          if (gpu.pci_path != above.path) continue;
          gpu.os_names.push_back(object->name);
          if (const char* model = hwloc_info(object, "GPUModel"); *model != '\0') gpu.model = model;
        }
        break;
      default:
        break;
    }
  }

  // What is only known after the walk: CPUs of nodes, RDMA devices, functions worth keeping.
  void finish() {
    // Not the node's own set: hwloc gives memory without processors the CPUs around it.
    for (NumaNode& node : machine_.numa_nodes) {
      for (const Core& core : machine_.cores) {
        if (core.numa_node != node.id) continue;
        node.cpus.insert(node.cpus.end(), core.cpus.begin(), core.cpus.end());
      }
      std::sort(node.cpus.begin(), node.cpus.end());
    }
    for (Nic& nic : machine_.nics) {
      for (const auto& [path, name] : rdma_) {
        if (!path.empty() && pci_path_of(nic.pci_path) == path) nic.rdma = name;
      }
    }
    for (const PciFunction& function : functions_) {
      const auto leads_here = [&path = function.path](const PciPath& other) {
        return other.size() >= path.size() && std::equal(path.begin(), path.end(), other.begin());
      };
      const bool is_wanted =
          std::any_of(machine_.gpus.begin(), machine_.gpus.end(),
                      [&](const Gpu& g) { return leads_here(g.pci_path); }) ||
          std::any_of(machine_.nics.begin(), machine_.nics.end(),
                      [&](const Nic& n) { return leads_here(pci_path_of(n.pci_path)); });
      if (is_wanted) machine_.pci.push_back(function);
    }
  }

  const HwlocLibrary& library_;
  Machine& machine_;
  std::vector<PciFunction> functions_;
  std::vector<std::pair<PciPath, std::string>> rdma_;
  bool is_too_deep_ = false;
};

}  // namespace

Machine machine_of(const HwlocTopology& topology, const std::string& source) {
  Machine machine;
  machine.source = source;
  Converter(topology, machine).run(topology.root());
  tidy(machine);
  return machine;
}

}  // namespace riffle
