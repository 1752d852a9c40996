#include "topology/fabric/fabric.h"

namespace riffle {
namespace {

// 10 Tbit/s: above any link, and small enough that loads times sizes stay exact in our arithmetic.
constexpr std::int64_t kMaxKbps = 10'000'000'000;

std::string outside(const std::string& what, std::int64_t value, std::int64_t least,
                    std::int64_t most, const char* unit) {
  return "fabric: " + what + " is " + std::to_string(value) + " " + unit + ", accepted " +
         std::to_string(least) + ".." + std::to_string(most);
}

}  // namespace

Fabric even_fabric(int nodes, std::int64_t rate_kbps) {
  RIFFLE_CHECK(nodes >= 1, "a fabric has at least one node");
  Fabric fabric;
  fabric.racks.push_back({.name = "all"});
  for (int n = 0; n < nodes; ++n) {
    fabric.nodes.push_back({"node" + std::to_string(n), rate_kbps, rate_kbps, 0});
  }
  return fabric;
}

Status validate(const Fabric& fabric) {
  if (fabric.nodes.empty() || fabric.nodes.size() > kMaxNodes) {
    return invalid_argument("fabric: " + std::to_string(fabric.nodes.size()) +
                            " nodes, accepted 1.." + std::to_string(kMaxNodes));
  }
  if (fabric.racks.empty() || fabric.racks.size() > kMaxNodes) {
    return invalid_argument("fabric: " + std::to_string(fabric.racks.size()) +
                            " racks, accepted 1.." + std::to_string(kMaxNodes));
  }
  for (const NodeLink& node : fabric.nodes) {
    for (std::int64_t rate : {node.out_kbps, node.in_kbps}) {
      if (rate < 1 || rate > kMaxKbps) {
        return invalid_argument(
            outside("a rate of node " + node.name, rate, 1, kMaxKbps, "kbit/s"));
      }
    }
    if (node.rack < 0 || node.rack >= static_cast<int>(fabric.racks.size())) {
      return invalid_argument(outside("the rack of node " + node.name, node.rack, 0,
                                      static_cast<std::int64_t>(fabric.racks.size()) - 1, ""));
    }
  }
  for (const RackLink& rack : fabric.racks) {
    for (std::int64_t rate : {rack.up_kbps, rack.down_kbps}) {
      if (rate < 0 || rate > kMaxKbps) {
        return invalid_argument(outside("an uplink rate of rack " + rack.name + " (0: no limit)",
                                        rate, 0, kMaxKbps, "kbit/s"));
      }
    }
  }
  if (fabric.latency_us < 0 || fabric.latency_us > kMaxLatencyUs) {
    return invalid_argument(outside("the latency", fabric.latency_us, 0, kMaxLatencyUs, "us"));
  }
  if (fabric.rack_latency_us &&
      (*fabric.rack_latency_us < 0 || *fabric.rack_latency_us > fabric.latency_us)) {
    return invalid_argument(
        outside("the latency within a rack", *fabric.rack_latency_us, 0, fabric.latency_us, "us"));
  }
  return Status::ok();
}

}  // namespace riffle
