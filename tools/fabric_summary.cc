#include "tools/fabric_summary.h"

#include <functional>
#include <map>

#include "tools/numbers.h"

namespace riffle::tools {

std::vector<RackSummary> summarise(const Fabric& fabric) {
  using Rates = std::pair<std::int64_t, std::int64_t>;
  std::vector<RackSummary> racks(fabric.racks.size());
  std::vector<std::map<Rates, RateGroup, std::greater<>>> groups(racks.size());
  for (const NodeLink& node : fabric.nodes) {
    const auto r = static_cast<std::size_t>(node.rack);
    RateGroup& group = groups[r][{node.out_kbps, node.in_kbps}];
    group.out_kbps = node.out_kbps;
    group.in_kbps = node.in_kbps;
    group.names.push_back(node.name);
    racks[r].out_kbps += node.out_kbps;
    ++racks[r].nodes;
  }
  for (std::size_t r = 0; r < racks.size(); ++r) {
    const std::string& name = fabric.racks[r].name;
    racks[r].name = "rack " + (name.empty() ? std::to_string(r) : name);
    racks[r].link = &fabric.racks[r];
    for (auto& [rates, group] : groups[r]) racks[r].groups.push_back(std::move(group));
    if (fabric.racks[r].up_kbps > 0) {
      racks[r].taper =
          static_cast<double>(racks[r].out_kbps) / static_cast<double>(fabric.racks[r].up_kbps);
    }
  }
  return racks;
}

std::string rates_text(std::int64_t out_kbps, std::int64_t in_kbps) {
  const auto one = [](std::int64_t kbps) { return rate_text(static_cast<double>(kbps) / 1000); };
  return out_kbps == in_kbps ? one(out_kbps) : one(out_kbps) + " out, " + one(in_kbps) + " in";
}

std::string uplink_text(const RackSummary& rack) {
  if (rack.link->up_kbps == 0 && rack.link->down_kbps == 0) return "uplink no limit";
  return "uplink " + rates_text(rack.link->up_kbps, rack.link->down_kbps);
}

std::string taper_text(const RackSummary& rack) {
  return rack.taper > 1 ? printed("%.3g:1 oversubscribed", rack.taper) : "";
}

std::string latency_text(const Fabric& fabric) {
  const std::string text = std::to_string(fabric.latency_us) + " us";
  if (!fabric.rack_latency_us) return text;
  return text + ", " + std::to_string(*fabric.rack_latency_us) + " us within a rack";
}

}  // namespace riffle::tools
