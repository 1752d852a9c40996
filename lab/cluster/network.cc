#include "lab/cluster/network.h"

#include <algorithm>
#include <fstream>

#include "lab/cluster/command.h"

namespace riffle::cluster {
namespace {

constexpr std::int64_t kPacketBytes = 16'384;
constexpr std::int64_t kBurstBytes = 72'000;
constexpr std::int64_t kQueueMs = 40;
constexpr std::int64_t kMinQueueBytes = 1'500'000;

std::int64_t queue_bytes_of(std::int64_t rate_kbps) {
  return std::max(rate_kbps / 8 * kQueueMs, kMinQueueBytes);
}

std::string limit(const std::string& device, std::int64_t rate_kbps) {
  if (rate_kbps == 0) return "";
  const std::int64_t queue_bytes = queue_bytes_of(rate_kbps);
  return "qdisc add dev " + device + " root tbf rate " + std::to_string(rate_kbps) + "kbit burst " +
         std::to_string(kBurstBytes) + " limit " + std::to_string(queue_bytes) + "\n";
}

// As limit(), but `guaranteed_kbps` of it belong to the packets that `match` picks.
std::string shared_limit(const std::string& device, std::int64_t rate_kbps,
                         std::int64_t guaranteed_kbps, const std::string& match) {
  const std::string to = " dev " + device + " ";
  const std::string queue = " bfifo limit " + std::to_string(queue_bytes_of(rate_kbps)) + "\n";
  const auto htb = [&](const std::string& parent, const std::string& id, std::int64_t kbps) {
    return "class add" + to + "parent " + parent + " classid " + id + " htb rate " +
           std::to_string(kbps) + "kbit ceil " + std::to_string(rate_kbps) + "kbit burst " +
           std::to_string(kBurstBytes) + " cburst " + std::to_string(kBurstBytes) + " quantum " +
           std::to_string(kPacketBytes) + "\n";
  };
  return "qdisc add" + to + "root handle 1: htb default 10\n" + htb("1:", "1:1", rate_kbps) +
         htb("1:1", "1:10", rate_kbps - guaranteed_kbps) + htb("1:1", "1:20", guaranteed_kbps) +
         "qdisc add" + to + "parent 1:10" + queue + "qdisc add" + to + "parent 1:20" + queue +
         "filter add" + to + "parent 1: protocol ip prio 1 u32 match ip " + match +
         " flowid 1:20\n";
}

std::string bridge(const std::string& name) {
  return "link add " + name + " up type bridge stp_state 0 mcast_snooping 0\n";
}

// Where the machine's bridges pass packets to its packet filter, as Docker arranges, ours would
// too, at the cost of a tenth of the processors. A kernel without the setting has no such filter.
void spare_packet_filter() {
  for (const char* tables : {"iptables", "ip6tables", "arptables"}) {
    std::ofstream(std::string("/proc/sys/net/bridge/bridge-nf-call-") + tables) << 0;
  }
}

Status run_batch(const std::string& links, const std::string& limits) {
  if (auto r = run_command({"ip", "-batch", "-"}, links); !r) return r.status();
  if (limits.empty()) return Status::ok();
  return run_command({"tc", "-batch", "-"}, limits).status();
}

}  // namespace

std::string address_of(int node) { return "10.77.0." + std::to_string(node + 1); }

Status set_up_switch(const Profile& profile, const std::vector<pid_t>& holders) {
  spare_packet_filter();
  std::string links, limits;
  const bool has_core = profile.racks.size() > 1;
  if (has_core) links += bridge("core");
  for (std::size_t k = 0; k < profile.racks.size(); ++k) {
    const std::string id = std::to_string(k);
    links += bridge("rack" + id);
    if (!has_core) continue;
    links += "link add up" + id + " type veth peer name down" + id + "\n";
    links += "link set up" + id + " up master rack" + id + "\n";
    links += "link set down" + id + " up master core\n";
    limits += limit("up" + id, profile.racks[k].uplink_kbps);
    limits += limit("down" + id, profile.racks[k].uplink_kbps);
  }
  for (std::size_t n = 0; n < holders.size(); ++n) {
    const std::string port = "n" + std::to_string(n);
    links +=
        "link add " + port + " type veth peer name eth0 netns " + std::to_string(holders[n]) + "\n";
    const Neighbour& neighbour = profile.neighbour;
    const bool is_neighbour = n == profile.rate_kbps.size();
    const int rack = profile.rack_of[is_neighbour ? static_cast<std::size_t>(neighbour.node) : n];
    links += "link set " + port + " up master rack" + std::to_string(rack) + "\n";
    if (is_neighbour) continue;
    limits += static_cast<int>(n) == neighbour.node
                  ? shared_limit(port, profile.rate_kbps[n], neighbour.guaranteed_kbps,
                                 "src " + address_of(profile.size()) + "/32")
                  : limit(port, profile.rate_kbps[n]);
  }
  return run_batch(links, limits);
}

Status set_up_node(const Profile& profile, int node) {
  const bool is_neighbour = node == profile.size();
  const std::int64_t rate_kbps =
      is_neighbour ? 0 : profile.rate_kbps[static_cast<std::size_t>(node)];
  const bool small_packets = rate_kbps != 0 || is_neighbour;
  const std::string packets = small_packets ? " gso_max_size " + std::to_string(kPacketBytes) : "";
  return run_batch("link set lo up\naddress add " + address_of(node) +
                       "/24 dev eth0\nlink set eth0 up" + packets + "\n",
                   node == profile.neighbour.node
                       ? shared_limit("eth0", rate_kbps, profile.neighbour.guaranteed_kbps,
                                      "dst " + address_of(profile.size()) + "/32")
                       : limit("eth0", rate_kbps));
}

}  // namespace riffle::cluster
