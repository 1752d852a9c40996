#include "tools/topo/fabric_text.h"

#include <algorithm>

#include "tools/fabric_summary.h"
#include "tools/numbers.h"

namespace riffle::tools::topo {
namespace {

// "node01 node02 ... node16": the first names and how many more.
std::string some_names(const std::vector<std::string>& names, std::size_t columns) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string more = " and " + std::to_string(names.size() - i) + " more";
    if (i > 0 && text.size() + names[i].size() + more.size() > columns) return text + more;
    text += (i > 0 ? " " : "") + names[i];
  }
  return text;
}

std::string uplink_line(const RackSummary& rack, const Colours& colours) {
  const std::string taper = taper_text(rack);
  return taper.empty() ? uplink_text(rack) : colours.red(uplink_text(rack) + ", " + taper);
}

}  // namespace

std::string to_text(const Fabric& fabric, const std::string& name, const Colours& colours) {
  std::string out =
      colours.bold("Network") + " " + name + ": " + counted(fabric.nodes.size(), "node") + ", " +
      counted(fabric.racks.size(), "rack") + ", latency " + latency_text(fabric) + "\n";
  const std::vector<RackSummary> racks = summarise(fabric);
  for (const RackSummary& rack : racks) {
    if (racks.size() > 1) {
      out += "  " + colours.bold(rack.name) + ": " +
             counted(static_cast<std::size_t>(rack.nodes), "node") + ", " +
             uplink_line(rack, colours) + "\n";
    }
    for (const RateGroup& group : rack.groups) {
      const std::string rate = rates_text(group.out_kbps, group.in_kbps);
      const bool is_slow = &group != rack.groups.data();
      out += "    " + (is_slow ? colours.red(rate) : rate) + ": " +
             some_names(group.names, 80 - 6 - std::min<std::size_t>(rate.size(), 40)) + "\n";
    }
  }
  return out;
}

}  // namespace riffle::tools::topo
