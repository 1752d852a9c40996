#include "topology/host/rdma_ports.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "topology/host/sysfs.h"

namespace riffle {

std::vector<RdmaPort> list_rdma_ports(const std::string& folder) {
  std::vector<RdmaPort> ports;
  for (const std::filesystem::path& device : sysfs::entries(folder)) {
    for (const std::filesystem::path& port : sysfs::entries(device / "ports")) {
      const auto number = sysfs::non_negative(port.filename().string());
      if (!number) continue;
      const std::string state = sysfs::attribute(port / "state");  // "4: ACTIVE"
      ports.push_back({device.filename().string(), *number, state.starts_with("4:"),
                       sysfs::attribute(port / "link_layer")});
    }
  }
  std::ranges::sort(ports, {}, [](const RdmaPort& p) { return std::tie(p.device, p.number); });
  return ports;
}

}  // namespace riffle
