#include "topology/probe/nodes_alone.h"

namespace riffle::probe {
namespace {

bool lower_to(double kbps, Rate* rate) {
  if (kbps <= 0 || rate->kbps <= kbps) return false;
  rate->kbps = kbps;
  return true;
}

}  // namespace

bool NodeLimits::lower(NodeRates* rates) const {
  bool is_lower = false;
  for (std::size_t n = 0; n < of.size(); ++n) {
    is_lower |= lower_to(of[n].up_kbps, &rates->out[n]);
    is_lower |= lower_to(of[n].down_kbps, &rates->in[n]);
  }
  return is_lower;
}

NodeLimits limits_of_nodes_alone(const Racks& racks) {
  NodeLimits limits;
  if (racks.count < 2) return limits;
  std::vector<int> members(static_cast<std::size_t>(racks.count), 0);
  for (const int rack : racks.rack_of) ++members[static_cast<std::size_t>(rack)];
  for (const int rack : racks.rack_of) {
    const auto r = static_cast<std::size_t>(rack);
    limits.of.push_back(members[r] == 1 ? racks.uplinks[r] : Uplink{});
  }
  return limits;
}

}  // namespace riffle::probe
