#include "lab/cluster/congestion.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "lab/cluster/command.h"
#include "lab/cluster/network.h"

namespace riffle::cluster {
namespace {

constexpr std::size_t kLongestName = 15;  // TCP_CA_NAME_MAX, less the end
constexpr char kAvailable[] = "/proc/sys/net/ipv4/tcp_available_congestion_control";

// A kernel that has it as a module loads it when root asks a socket for it.
bool kernel_has(const std::string& name) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                   static_cast<socklen_t>(name.size()));
  close(fd);
  std::ifstream file(kAvailable);
  for (std::string one; file >> one;) {
    if (one == name) return true;
  }
  return false;
}

}  // namespace

Status check_congestion(const std::string& name) {
  if (name.empty() || (name.size() <= kLongestName && kernel_has(name))) return Status::ok();
  std::ifstream file(kAvailable);
  std::string all;
  std::getline(file, all);
  return invalid_argument("congestion control \"" + name + "\": this kernel has " + all);
}

Status set_congestion(const Profile& profile, int node) {
  if (profile.congestion.empty()) return Status::ok();
  std::string routes;
  for (int nic = 0; nic < profile.nics; ++nic) {
    const std::string own = address_of(node, nic);
    const std::string subnet = own.substr(0, own.rfind('.')) + ".0/24";
    routes += "route change " + subnet + " dev eth" + std::to_string(nic) +
              " proto kernel scope link src " + own + " congctl lock " + profile.congestion +
              " rto_min " + std::to_string(kRtoMinMs) + "ms\n";
  }
  return run_command({"ip", "-batch", "-"}, routes).status();
}

}  // namespace riffle::cluster
