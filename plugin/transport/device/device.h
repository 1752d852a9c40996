// The network devices that NCCL sees. By default one logical device per node that joins all usable
// NICs as streams (every node then reports the same count, name and order whatever its NICs, which
// NCCL 2.30 demands); with RIFFLE_DEVICE_PER_NIC=1 one device per NIC. Which NICs are usable says
// nic_choice.h. Never empty; an error where a setting names interfaces that there are not.
//
// Built once per process, by the choice of the first call, and constant afterwards, so pointers
// into it stay valid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/transport/base/options.h"
#include "topology/base/status.h"
#include "topology/host/nics.h"

namespace riffle {

struct NicAddress {
  std::string interface;  // e.g. "eth0"
  std::string address;    // numeric IPv4 or IPv6, without scope
  bool is_ipv6 = false;
  std::uint32_t scope_id = 0;
  int prefix_bits = 0;  // of its network; 0: not known
};

// "10.1.2.0/24"; empty where the prefix is unknown or leaves two addresses at most.
std::string network_of(const NicAddress& nic);

struct Device {
  std::string name;      // identical in NET and COLLNET
  std::string pci_path;  // sysfs real path; empty if the NIC has none
  std::uint64_t guid = 0;
  int speed_mbps = 10000;             // sum over its NICs as the driver reports; at least 1000
  bool knows_speed = false;           // hardware told it; virtual NICs report anything
  std::vector<NicAddress> addresses;  // at least one, the fastest NIC's first
};

const Result<std::vector<Device>>& devices(const DeviceChoice& choice);

// What there is to choose from.
struct Interfaces {
  std::vector<NicAddress> addresses;  // of interfaces that are up
  // What sysfs says; empty where it says nothing, or shows another network namespace than that of
  // this process (one that was entered without mounting sysfs anew).
  std::vector<Nic> nics;
};
Interfaces interfaces_of_this_machine(const std::string& sysfs = "/sys");

}  // namespace riffle
