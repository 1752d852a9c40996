#include "test/cluster/cluster.h"

#include <fstream>
#include <sstream>

#include "test/cluster/network.h"

namespace riffle::cluster {

Result<std::unique_ptr<Cluster>> Cluster::create(const Profile& profile) {
  if (Status s = namespaces_allowed(); !s) return s;
  auto namespaces = Namespaces::create(
      profile.size(),
      [&](const std::vector<pid_t>& holders) { return set_up_switch(profile, holders); },
      [&](int node) { return set_up_node(profile, node); });
  if (!namespaces) return namespaces.status();
  return std::unique_ptr<Cluster>(new Cluster(profile, std::move(namespaces.value())));
}

Result<WireBytes> Cluster::wire_bytes(int node) const {
  const std::string path =
      "/proc/" + std::to_string(holders()[static_cast<std::size_t>(node)]) + "/net/dev";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find("eth0:");
    if (colon == std::string::npos) continue;
    std::istringstream fields(line.substr(colon + 5));
    WireBytes bytes;
    fields >> bytes.received;
    for (int i = 0; i < 8; ++i) fields >> bytes.sent;  // the ninth number
    if (fields) return bytes;
  }
  return system_error("cannot read eth0's counters of node" + std::to_string(node) + " in " + path);
}

}  // namespace riffle::cluster
