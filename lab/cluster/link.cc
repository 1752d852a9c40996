#include "lab/cluster/link.h"

#include <algorithm>

namespace riffle::cluster {
namespace {

constexpr std::int64_t kQueueMs = 40;
constexpr std::int64_t kMinQueueBytes = 1'500'000;
constexpr std::int64_t kSegmentBytes = 1448, kHeaderBytes = 66;

// On the wire, of the largest packet, with room for one more header.
std::int64_t packet_bytes(const Shaping& s) {
  const std::int64_t bytes = s.gso_max_bytes != 0 ? s.gso_max_bytes : kPacketBytes;
  return bytes + (bytes / kSegmentBytes + 2) * kHeaderBytes;
}

std::int64_t queue_bytes_of(const Shaping& s, std::int64_t rate_kbps) {
  if (s.shaper == Shaper::kPolicer) return packet_bytes(s);
  if (s.queue_bytes != 0) return std::max(s.queue_bytes, packet_bytes(s));
  if (s.queue_ms != 0) return std::max(rate_kbps / 8 * s.queue_ms + s.burst_bytes, packet_bytes(s));
  return std::max(rate_kbps / 8 * kQueueMs, kMinQueueBytes);
}

// One of htb's classes.
std::string htb_class(const Shaping& s, const std::string& to, const std::string& parent,
                      const std::string& id, std::int64_t rate_kbps, std::int64_t ceiling_kbps) {
  const std::string burst = std::to_string(s.burst_bytes);
  const std::int64_t quantum = s.gso_max_bytes != 0 ? s.gso_max_bytes : kPacketBytes;
  return "class add" + to + "parent " + parent + " classid " + id + " htb rate " +
         std::to_string(rate_kbps) + "kbit ceil " + std::to_string(ceiling_kbps) + "kbit burst " +
         burst + " cburst " + burst + " quantum " + std::to_string(quantum) + "\n";
}

}  // namespace

std::string limit(const Shaping& shaping, const std::string& device, std::int64_t rate_kbps) {
  if (rate_kbps == 0) return "";
  const std::string queue = " limit " + std::to_string(queue_bytes_of(shaping, rate_kbps)) + "\n";
  const std::string to = " dev " + device + " ";
  if (shaping.shaper == Shaper::kHtb) {
    return "qdisc add" + to + "root handle 1: htb default 1\n" +
           htb_class(shaping, to, "1:", "1:1", rate_kbps, rate_kbps) + "qdisc add" + to +
           "parent 1:1 bfifo" + queue;
  }
  return "qdisc add" + to + "root tbf rate " + std::to_string(rate_kbps) + "kbit burst " +
         std::to_string(shaping.burst_bytes) + queue;
}

std::string shared_limit(const Shaping& shaping, const std::string& device, std::int64_t rate_kbps,
                         std::int64_t guaranteed_kbps, const std::string& match) {
  const std::string to = " dev " + device + " ";
  const std::string queue =
      " bfifo limit " + std::to_string(queue_bytes_of(shaping, rate_kbps)) + "\n";
  return "qdisc add" + to + "root handle 1: htb default 10\n" +
         htb_class(shaping, to, "1:", "1:1", rate_kbps, rate_kbps) +
         htb_class(shaping, to, "1:1", "1:10", rate_kbps - guaranteed_kbps, rate_kbps) +
         htb_class(shaping, to, "1:1", "1:20", guaranteed_kbps, rate_kbps) + "qdisc add" + to +
         "parent 1:10" + queue + "qdisc add" + to + "parent 1:20" + queue + "filter add" + to +
         "parent 1: protocol ip prio 1 u32 match ip " + match + " flowid 1:20\n";
}

std::string redirect_received(const std::string& device, const std::string& through) {
  const std::string to = " dev " + device + " ";
  return "qdisc add" + to + "handle ffff: ingress\nfilter add" + to +
         "parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev " +
         through + "\n";
}

}  // namespace riffle::cluster
