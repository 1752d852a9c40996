// What production would call the rates of a simulated network. There they count as payload rates;
// a Fabric's are link rates, and measured payload becomes link rate by the packets' headers.
#pragma once

#include <cmath>
#include <cstdint>

#include "topology/fabric/fabric.h"
#include "topology/probe/live_fabric.h"

namespace riffle::sim {

inline constexpr int kSimMtu = 1500;  // as the passive meter assumes

inline Fabric link_rates(Fabric fabric) {
  const auto scale = [](std::int64_t* kbps) {
    *kbps = std::llround(static_cast<double>(*kbps) * probe::link_per_payload(kSimMtu));
  };
  for (NodeLink& node : fabric.nodes) {
    scale(&node.out_kbps);
    scale(&node.in_kbps);
  }
  for (RackLink& rack : fabric.racks) {
    scale(&rack.up_kbps);
    scale(&rack.down_kbps);
  }
  return fabric;
}

}  // namespace riffle::sim
