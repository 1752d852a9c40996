// PCI functions and how near two of them are, from the way that leads to each. Plain data, any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace riffle {

// The way from the CPU to a function: its host bridge, the bridges below it, itself, e.g.
// {"pci0000:3a", "0000:3a:00.0", "0000:3b:00.1"}. Empty if unknown.
using PciPath = std::vector<std::string>;

// The PCI part of a sysfs path such as /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/virtio2:
// up to its last PCI function. Empty if it has none.
PciPath pci_path_of(std::string_view sysfs_path);

bool is_pci_address(std::string_view text);  // "0000:3b:00.1": domain, bus, device, function

struct PciFunction {
  PciPath path;
  int class_code = 0;  // 24 bits: class, subclass, interface; 0x020000 is Ethernet
  int vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
  double lane_gtps = 0;  // of its link, in GT/s as PCIe counts (16.0: generation 4); 0 if unknown
  int lanes = 0;         // 0 if unknown

  const std::string& address() const { return path.back(); }
};

std::string hex(int value,
                int digits);  // as sysfs writes class codes and ids: hex(2, 4) is "0x0002"

// What the link of a function carries in GB/s is nearly lanes x generation; this finds the widest
// link (up to 16 lanes) of that rate. Nothing if none fits within 1 %.
struct PciLink {
  double lane_gtps;
  int lanes;
};
std::optional<PciLink> pci_link_of_rate(double gbytes_per_s);

// In the words of NCCL and `nvidia-smi topo`. NCCL itself counts kNode as PHB.
enum class Distance {
  kPix,      // at most one PCIe switch between them
  kPxb,      // several PCIe switches, but not the CPU
  kPhb,      // the host bridge (CPU) that both hang from
  kNode,     // different host bridges of one NUMA node
  kSys,      // different NUMA nodes
  kUnknown,  // no PCI path or NUMA node is known
};

struct Place {
  PciPath path;                  // may be empty
  std::optional<int> numa_node;  // may be unknown
};

Distance distance(const Place& a, const Place& b);
std::string_view to_text(Distance distance);  // "PIX", ..., "?"

// The PCIe switches above a function as NCCL draws them: one element per switch, its upstream port;
// the root port and downstream ports are left out. The nearest to the CPU first.
std::vector<std::string> switches_above(const PciPath& path);

}  // namespace riffle
