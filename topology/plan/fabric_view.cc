#include "topology/plan/fabric_view.h"

#include <algorithm>

namespace riffle {

FabricView::FabricView(const Fabric& fabric) : fabric_(&fabric), rack_of_(fabric.nodes.size()) {
  std::vector<int> index(fabric.racks.size(), -1);
  for (int n = 0; n < fabric.size(); ++n) {
    const NodeLink& node = fabric.nodes[n];
    if (index[node.rack] < 0) {
      index[node.rack] = static_cast<int>(racks_.size());
      racks_.push_back({.id = node.rack});
    }
    rack_of_[n] = index[node.rack];
    RackView& rack = racks_[rack_of_[n]];
    rack.members.push_back(n);
    rack.out_kbps += static_cast<double>(node.out_kbps);
    rack.in_kbps += static_cast<double>(node.in_kbps);
  }
  for (RackView& rack : racks_) {
    const RackLink& link = fabric.racks[rack.id];
    const auto capped = [](std::int64_t limit, double nodes) {
      return limit == 0 ? nodes : std::min(static_cast<double>(limit), nodes);
    };
    rack.up_kbps = capped(link.up_kbps, rack.out_kbps);
    rack.down_kbps = capped(link.down_kbps, rack.in_kbps);
  }
}

double FabricView::rate_kbps(int node) const {
  const NodeLink& link = fabric_->nodes[node];
  return static_cast<double>(std::min(link.out_kbps, link.in_kbps));
}

}  // namespace riffle
