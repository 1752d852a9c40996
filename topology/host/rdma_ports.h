// The ports of a machine's RDMA devices, from sysfs. Plain reads of small files, no state, any
// thread.
#pragma once

#include <string>
#include <vector>

namespace riffle {

inline constexpr char kRdmaPorts[] = "/sys/class/infiniband";

struct RdmaPort {
  std::string device;      // e.g. "mlx5_0"
  int number = 0;          // from 1
  bool is_active = false;  // the link is up, and a subnet manager, if it needs one, was there
  std::string link_layer;  // "InfiniBand", "Ethernet" (RoCE), "Unspecified" (EFA)
};

// In the order of names and numbers. `folder` has one folder per device; tests give one of theirs.
// Empty where there is no such folder.
std::vector<RdmaPort> list_rdma_ports(const std::string& folder = kRdmaPorts);

}  // namespace riffle
