// The network interfaces of a machine: from sysfs, which knows speed, driver and state, or part of
// a recorded machine (machine_read.h). Which of them carry traffic is decided elsewhere
// (plugin/transport); this only looks.
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
  std::string kind;               // the kernel's DEVTYPE: "bond", "wlan", "vxlan"; often empty
  std::optional<int> speed_mbps;  // none where the driver does not know (virtio, Wi-Fi, down)
  std::string odd_speed;          // what the driver said when that cannot be true; usually empty
  std::string pci_path;           // real path of its PCI function under <root>; empty if none
  std::optional<int> numa_node;   // hwloc's to tell (machine_read.h); none if it is not known
  std::string mac;                // e.g. "52:54:00:12:34:56"
  int mtu = 0;                    // bytes; 0 if unknown
  std::vector<std::string> bond_members;  // if it is a bond: its interfaces
  std::string bond_master;                // if it is part of a bond
  std::vector<std::string> lower;  // if virtual: interfaces of this machine that it runs over
  std::string rdma;                // its RDMA device, e.g. "mlx5_0"; empty if none
};

inline constexpr int kMaxNicSpeedMbps = 10'000'000;  // more than that is no speed

// speed_mbps or odd_speed from what a driver or a file says; "-1" and "0" are unknown.
void set_speed(const std::string& text, Nic& nic);

// Null if there is none of that name.
const Nic* find_nic(const std::vector<Nic>& nics, const std::string& name);

// The hardware under an interface: itself, or what a bond, VLAN or bridge runs over, in the order
// of their names. Empty if `name` is unknown or has none (loopback, veth).
std::vector<const Nic*> hardware_of(const std::vector<Nic>& nics, const std::string& name);

// The speed of an interface: its own, else (a bond whose driver does not tell) that of its hardware
// together. Not the nominal speed of interfaces without hardware: a veth says 10 Gbit/s on any
// machine.
std::optional<int> real_speed_mbps(const std::vector<Nic>& nics, const std::string& name);

// All interfaces in the order of their names. `sysfs` is the mount point; tests give a tree of
// theirs. An error only if there is no such tree.
Result<std::vector<Nic>> list_nics(const std::string& sysfs = "/sys");

}  // namespace riffle
