// The network interfaces of this machine as sysfs describes them. Which of them carry traffic is
// decided elsewhere (plugin/transport); this only looks.
//
// Plain reads of small files, no state, any thread. Interfaces come and go: one that vanishes while
// it is read is left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

struct Nic {
  std::string name;         // e.g. "eth0"
  bool is_up = false;       // administratively
  bool is_running = false;  // has a carrier; false while down
  bool is_loopback = false;
  bool is_virtual = false;        // no hardware of its own: lo, veth, bridge, bond, VLAN, tunnel
  std::string driver;             // e.g. "mlx5_core"; empty if virtual
  std::optional<int> speed_mbps;  // none where the driver does not know (virtio, Wi-Fi, down)
  std::string pci_path;           // real path of its PCI function under <root>; empty if none
  std::optional<int> numa_node;   // none on machines without NUMA
  std::string mac;                // e.g. "52:54:00:12:34:56"
  int mtu = 0;                    // bytes; 0 if unknown
  std::vector<std::string> bond_members;  // if it is a bond: its interfaces
  std::string bond_master;                // if it is part of a bond
};

// All interfaces in the order of their names. `sysfs` is the mount point; tests give a tree of
// theirs. An error only if there is no such tree.
Result<std::vector<Nic>> list_nics(const std::string& sysfs = "/sys");

}  // namespace riffle
