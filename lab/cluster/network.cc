#include "lab/cluster/network.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "lab/cluster/command.h"
#include "lab/cluster/congestion.h"
#include "lab/cluster/link.h"

namespace riffle::cluster {
namespace {

std::string bridge(const std::string& name) {
  return "link add " + name + " up type bridge stp_state 0 mcast_snooping 0\n";
}

// Where the machine's bridges pass packets to its packet filter, as Docker arranges, ours would
// too, at the cost of a tenth of the processors. A kernel without the setting has no such filter.
Status set_packet_filter(bool on) {
  for (const char* tables : {"iptables", "ip6tables", "arptables"}) {
    const std::string path = std::string("/proc/sys/net/bridge/bridge-nf-call-") + tables;
    std::ofstream file(path);
    file << (on ? 1 : 0);
    if (on && !file.flush()) {
      return system_error("packet_filter = true needs a kernel with br_netfilter: cannot write " +
                          path);
    }
  }
  return Status::ok();
}

Status run_batch(const std::string& links, const std::string& limits) {
  if (auto r = run_command({"ip", "-batch", "-"}, links); !r) return r.status();
  if (limits.empty()) return Status::ok();
  return run_command({"tc", "-batch", "-"}, limits).status();
}

// The commands for all that is in the switch's namespace.
class Switch {
 public:
  explicit Switch(const Profile& profile) : profile_(profile) {
    const bool has_core = profile.racks.size() > 1;
    if (has_core) links_ += bridge("core");
    for (std::size_t p = 0; p < profile.pods.size(); ++p) {
      const std::string id = std::to_string(p);
      links_ += bridge("pod" + id);
      join("pod" + id, "out" + id, "core", "in" + id, profile.pods[p].uplink);
    }
    for (std::size_t k = 0; k < profile.racks.size(); ++k) {
      const std::string id = std::to_string(k);
      const int pod = profile.racks[k].pod;
      links_ += bridge("rack" + id);
      if (!has_core) continue;
      join("rack" + id, "up" + id, pod < 0 ? "core" : "pod" + std::to_string(pod), "down" + id,
           profile.racks[k].uplink);
    }
  }

  void plug_in(std::size_t node, pid_t holder) {
    const Neighbour& neighbour = profile_.neighbour;
    const bool is_neighbour = node == profile_.rates.size();
    const std::size_t like = is_neighbour ? static_cast<std::size_t>(neighbour.node) : node;
    const std::string rack = "rack" + std::to_string(profile_.rack_of[like]);
    for (int nic = 0; nic < profile_.nics; ++nic) {
      const std::string port =
          "n" + std::to_string(node) + (nic == 0 ? "" : "." + std::to_string(nic));
      links_ += "link add " + port + " type veth peer name eth" + std::to_string(nic) + " netns " +
                std::to_string(holder) + "\nlink set " + port + " up master " + rack + "\n";
      if (is_neighbour) continue;
      const Rates& rates = profile_.rates[node];
      if (static_cast<int>(node) == neighbour.node) {
        limits_ += shared_limit(profile_.shaping, port, rates.in_kbps, neighbour.guaranteed_kbps,
                                "src " + address_of(profile_.size()) + "/32");
        continue;
      }
      limits_ += limit(profile_.shaping, port, rates.in_kbps);
      if (profile_.shaping.shaper == Shaper::kPolicer && rates.out_kbps != 0) {
        const std::string policer = "p" + port;
        links_ += "link add " + policer + " up type ifb\n";
        limits_ += limit(profile_.shaping, policer, rates.out_kbps);
        limits_ += redirect_received(port, policer);
      }
    }
  }

  Status run() const { return run_batch(links_, limits_); }

 private:
  // Two bridges by a link with `near` at the lower end and `far` at the upper one.
  void join(const std::string& lower, const std::string& near, const std::string& upper,
            const std::string& far, const Rates& uplink) {
    links_ += "link add " + near + " type veth peer name " + far + "\n";
    links_ += "link set " + near + " up master " + lower + "\n";
    links_ += "link set " + far + " up master " + upper + "\n";
    limits_ += limit(profile_.shaping, near, uplink.out_kbps);
    limits_ += limit(profile_.shaping, far, uplink.in_kbps);
  }

  const Profile& profile_;
  std::string links_, limits_;
};

// Each address of a node is answered for by its own NIC alone.
Status keep_nics_apart() {
  for (const auto& [setting, value] : {std::pair("arp_ignore", 1), std::pair("arp_announce", 2)}) {
    const std::string path = std::string("/proc/sys/net/ipv4/conf/all/") + setting;
    std::ofstream file(path);
    file << value;
    if (!file.flush()) return system_error("nics above 1: cannot write " + path);
  }
  return Status::ok();
}

Status call_it_node() {
  constexpr char kName[] = "node";
  if (sethostname(kName, sizeof kName - 1) == 0) return Status::ok();
  return system_error(std::string("host_names = \"equal\": sethostname: ") + std::strerror(errno));
}

}  // namespace

std::string address_of(int node, int nic) {
  return "10.77." + std::to_string(nic) + "." + std::to_string(node + 1);
}

Status set_up_switch(const Profile& profile, const std::vector<pid_t>& holders) {
  if (Status s = set_packet_filter(profile.packet_filter); !s) return s;
  Switch made(profile);
  for (std::size_t n = 0; n < holders.size(); ++n) made.plug_in(n, holders[n]);
  return made.run();
}

Status set_up_node(const Profile& profile, int node) {
  const bool is_neighbour = node == profile.size();
  if (profile.equal_host_names) {
    if (Status s = call_it_node(); !s) return s;
  }
  if (profile.nics > 1) {
    if (Status s = keep_nics_apart(); !s) return s;
  }
  const std::int64_t rate_kbps =
      is_neighbour ? 0 : profile.rates[static_cast<std::size_t>(node)].out_kbps;
  std::int64_t packet_bytes = profile.shaping.gso_max_bytes;
  if (packet_bytes == 0 && (rate_kbps != 0 || is_neighbour)) packet_bytes = kPacketBytes;
  const std::string packets =
      packet_bytes != 0 ? " gso_max_size " + std::to_string(packet_bytes) : "";
  std::string links = "link set lo up\n", limits;
  for (int nic = 0; nic < profile.nics; ++nic) {
    const std::string name = "eth" + std::to_string(nic);
    links += "address add " + address_of(node, nic) + "/24 dev " + name + "\nlink set " + name +
             " up" + packets + "\n";
    if (node == profile.neighbour.node) {
      limits += shared_limit(profile.shaping, name, rate_kbps, profile.neighbour.guaranteed_kbps,
                             "dst " + address_of(profile.size()) + "/32");
    } else if (profile.shaping.shaper != Shaper::kPolicer) {
      limits += limit(profile.shaping, name, rate_kbps);
    }
  }
  const Status made = run_batch(links, limits);
  return made ? set_congestion(profile, node) : made;
}

}  // namespace riffle::cluster
