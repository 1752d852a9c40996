#include "test/cluster/network.h"

#include <algorithm>
#include <fstream>

#include "test/cluster/command.h"

namespace riffle::cluster {
namespace {

constexpr std::int64_t kPacketBytes = 16'384;
constexpr std::int64_t kBurstBytes = 72'000;
constexpr std::int64_t kQueueMs = 40;
constexpr std::int64_t kMinQueueBytes = 1'500'000;

std::string limit(const std::string& device, std::int64_t rate_kbps) {
  if (rate_kbps == 0) return "";
  const std::int64_t queue_bytes = std::max(rate_kbps / 8 * kQueueMs, kMinQueueBytes);
  return "qdisc add dev " + device + " root tbf rate " + std::to_string(rate_kbps) + "kbit burst " +
         std::to_string(kBurstBytes) + " limit " + std::to_string(queue_bytes) + "\n";
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

Status apply(const std::string& links, const std::string& limits) {
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
    links += "link set " + port + " up master rack" + std::to_string(profile.rack_of[n]) + "\n";
    limits += limit(port, profile.rate_kbps[n]);
  }
  return apply(links, limits);
}

Status set_up_node(const Profile& profile, int node) {
  const std::int64_t rate_kbps = profile.rate_kbps[static_cast<std::size_t>(node)];
  const std::string packets = rate_kbps == 0 ? "" : " gso_max_size " + std::to_string(kPacketBytes);
  return apply("link set lo up\naddress add " + address_of(node) +
                   "/24 dev eth0\nlink set eth0 up" + packets + "\n",
               limit("eth0", rate_kbps));
}

}  // namespace riffle::cluster
