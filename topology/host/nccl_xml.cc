#include "topology/host/nccl_xml.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace riffle {
namespace {

// NCCL's parser knows no entities and ends a value at the quote; nothing but names comes here.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 200)) {
    const auto u = static_cast<unsigned char>(c);
    if (c != '"' && c != '\'' && c != '<' && c != '>' && c != '&' && u >= 0x20 && u < 0x7f)
      out += c;
  }
  return out;
}

struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::map<std::string, Element> children;  // by sort key

  void add(const std::string& key, const std::string& value) {
    attributes.emplace_back(key, plain(value));
  }
  void print(int indent, std::string& out) const {
    const std::string space(static_cast<std::size_t>(indent), ' ');
    out += space + "<" + name;
    for (const auto& [key, value] : attributes)
      out.append(" ").append(key).append("=\"").append(value).append("\"");
    if (children.empty()) {
      out += "/>\n";
      return;
    }
    out += ">\n";
    for (const auto& [key, child] : children) child.print(indent + 2, out);
    out += space + "</" + name + ">\n";
  }
};

std::string nccl_architecture(const std::string& architecture) {
  if (architecture == "aarch64") return "arm64";
  if (architecture.starts_with("ppc64")) return "ppc64";
  return architecture.empty() ? "x86_64" : architecture;
}

Element cpu_element(const Machine& machine, int numa_node) {
  Element cpu{"cpu", {}, {}};
  cpu.add("numaid", std::to_string(numa_node));
  const NumaNode* const node = find_numa_node(machine, numa_node);
  cpu.add("affinity", to_mask(node != nullptr ? node->cpus : cpus_of(machine)));
  cpu.add("arch", nccl_architecture(machine.architecture));
  const Processor* processor = machine.processors.empty() ? nullptr : &machine.processors.front();
  for (const Processor& p : machine.processors) {
    if (node != nullptr && p.id == node->processor) processor = &p;
  }
  if (processor != nullptr && !processor->vendor.empty()) {
    cpu.add("vendor", processor->vendor);
    cpu.add("familyid", std::to_string(processor->family));
    cpu.add("modelid", std::to_string(processor->model_number));
  } else if (nccl_architecture(machine.architecture) == "x86_64") {
    cpu.add("vendor", "unknown");  // the attribute has to be there; NCCL takes its defaults
  }
  return cpu;
}

// The speeds as the kernel spells them, which is what NCCL's table lists.
std::string speed_text(double gtps) {
  if (gtps <= 0) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GT/s PCIe", gtps);
  return text;
}

Element pci_element(const Machine& machine, const std::string& address, int default_class) {
  Element pci{"pci", {}, {}};
  const PciFunction* const f = find_pci(machine, address);
  pci.add("busid", address);
  pci.add("class", hex(f != nullptr && f->class_code != 0 ? f->class_code : default_class, 6));
  if (f != nullptr && f->vendor != 0) {
    pci.add("vendor", hex(f->vendor, 4));
    pci.add("device", hex(f->device, 4));
    pci.add("subsystem_vendor", hex(f->subsystem_vendor, 4));
    pci.add("subsystem_device", hex(f->subsystem_device, 4));
  }
  // Nothing and 0 make NCCL count 16 lanes of generation 3.
  pci.add("link_speed", f != nullptr ? speed_text(f->lane_gtps) : "");
  pci.add("link_width", std::to_string(f != nullptr ? f->lanes : 0));
  return pci;
}

class Writer {
 public:
  explicit Writer(const Machine& machine) : machine_(machine) {
    system_.add("version", "1");
    for (const NumaNode& node : machine.numa_nodes) {
      if (!node.cpus.empty()) cpu(node.id);
    }
    if (system_.children.empty()) cpu(machine.numa_nodes.empty() ? -1 : machine.numa_nodes[0].id);
  }

  // The element of a PCI function, with all that is above it.
  Element& function(const PciPath& path, std::optional<int> numa_node, int default_class) {
    constexpr int kBridge = 0x060400;
    Element* at = &cpu(numa_node.value_or(first_cpu()));
    for (const std::string& port : switches_above(path)) {
      at = &at->children.try_emplace(port, pci_element(machine_, port, kBridge)).first->second;
    }
    const std::string& address = path.back();
    return at->children.try_emplace(address, pci_element(machine_, address, default_class))
        .first->second;
  }

  Element& nic(const NcclNet& net) {
    constexpr int kEthernet = 0x020000;
    const PciPath path = pci_path_of(net.pci_path);
    Element& parent =
        path.empty() ? cpu(first_cpu()) : function(path, numa_node_of(path), kEthernet);
    return parent.children.try_emplace("~nic", Element{"nic", {}, {}}).first->second;
  }

  std::string text() const {
    std::string out;
    system_.print(0, out);
    return out;
  }

 private:
  static std::string key_of(int numa_node) {
    char key[16];
    std::snprintf(key, sizeof key, "%06d", numa_node + 1);
    return key;
  }
  Element& cpu(int numa_node) {
    return system_.children.try_emplace(key_of(numa_node), cpu_element(machine_, numa_node))
        .first->second;
  }
  int first_cpu() const { return std::stoi(system_.children.begin()->first) - 1; }
  std::optional<int> numa_node_of(const PciPath& path) const {
    for (const Nic& nic : machine_.nics) {
      if (pci_path_of(nic.pci_path) == path) return nic.numa_node;
    }
    return {};
  }

  const Machine& machine_;
  Element system_{"system", {}, {}};
};

}  // namespace

std::string to_nccl_xml(const Machine& machine, const std::vector<NcclNet>& nets) {
  constexpr int k3dController = 0x030200;
  Writer writer(machine);
  int index = 0;  // NVML counts NVIDIA's GPUs by address
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.vendor != "NVIDIA" || gpu.pci_path.empty()) continue;
    Element element{"gpu", {}, {}};
    element.add("dev", std::to_string(index++));
    writer.function(gpu.pci_path, gpu.numa_node, k3dController)
        .children.try_emplace("gpu", std::move(element));
  }
  for (std::size_t i = 0; i < nets.size(); ++i) {
    Element element{"net", {}, {}};
    element.add("name", nets[i].name);
    element.add("dev", std::to_string(i));
    element.add("speed", std::to_string(nets[i].speed_mbps));
    element.add("gdr", "0");
    if (nets[i].has_collnet) element.add("coll", "1");
    writer.nic(nets[i]).children.try_emplace(std::to_string(i), std::move(element));
  }
  return writer.text();
}

}  // namespace riffle
