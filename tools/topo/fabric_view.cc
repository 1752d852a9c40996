#include "tools/topo/fabric_view.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "tools/numbers.h"
#include "tools/topo/view.h"

namespace riffle::tools::topo {
namespace {

constexpr double kCell = 22, kGap = 6, kRackHead = 46, kTop = 84;
constexpr const char* kFast = "#2e7d5b";
constexpr const char* kSlow = "#c0392b";
constexpr const char* kMiddle = "#d9a441";

std::string rates(std::int64_t out_kbps, std::int64_t in_kbps) {
  const auto one = [](std::int64_t kbps) { return rate_text(static_cast<double>(kbps) / 1000); };
  return out_kbps == in_kbps ? one(out_kbps) : one(out_kbps) + " out, " + one(in_kbps) + " in";
}

std::string uplink_text(const RackSummary& rack) {
  if (rack.link->up_kbps == 0 && rack.link->down_kbps == 0) return "uplink no limit";
  std::string text = "uplink " + rates(rack.link->up_kbps, rack.link->down_kbps);
  if (rack.taper > 1) {
    char taper[48];
    std::snprintf(taper, sizeof taper, ", %.3g:1 oversubscribed", rack.taper);
    text += taper;
  }
  return text;
}

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

int cells_per_row(double width) { return static_cast<int>((width - 64) / (kCell + 4)); }

std::string name_of(const RackLink& rack, std::size_t index) {
  return rack.name.empty() ? "rack " + std::to_string(index) : "rack " + rack.name;
}

std::string latency_text(const Fabric& fabric) {
  const std::string text = std::to_string(fabric.latency_us) + " us";
  if (!fabric.rack_latency_us) return text;
  return text + ", " + std::to_string(*fabric.rack_latency_us) + " us within a rack";
}

}  // namespace

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
    racks[r].link = &fabric.racks[r];
    for (auto& [rates, group] : groups[r]) racks[r].groups.push_back(std::move(group));
    if (fabric.racks[r].up_kbps > 0) {
      racks[r].taper =
          static_cast<double>(racks[r].out_kbps) / static_cast<double>(fabric.racks[r].up_kbps);
    }
  }
  return racks;
}

std::string to_text(const Fabric& fabric, const std::string& name, const Colours& colours) {
  std::string out =
      colours.bold("Network") + " " + name + ": " + counted(fabric.nodes.size(), "node") + ", " +
      counted(fabric.racks.size(), "rack") + ", latency " + latency_text(fabric) + "\n";
  const std::vector<RackSummary> racks = summarise(fabric);
  for (std::size_t r = 0; r < racks.size(); ++r) {
    const std::string uplink = uplink_text(racks[r]);
    if (racks.size() > 1) {
      out += "  " + colours.bold(name_of(*racks[r].link, r)) + ": " +
             counted(static_cast<std::size_t>(racks[r].nodes), "node") + ", " +
             (racks[r].taper > 1 ? colours.red(uplink) : uplink) + "\n";
    }
    for (const RateGroup& group : racks[r].groups) {
      const std::string rate = rates(group.out_kbps, group.in_kbps);
      const bool is_slow = &group != racks[r].groups.data();
      out += "    " + (is_slow ? colours.red(rate) : rate) + ": " +
             some_names(group.names, 80 - 6 - std::min<std::size_t>(rate.size(), 40)) + "\n";
    }
  }
  return out;
}

double drawn_height(const Fabric& fabric, double width) {
  double height = kTop;
  for (const RackSummary& rack : summarise(fabric)) {
    const int rows = (rack.nodes + cells_per_row(width) - 1) / cells_per_row(width);
    height += kRackHead + std::max(rows, 1) * (kCell + 4) + kGap + 8;
  }
  return height;
}

double draw(const Fabric& fabric, const std::string& name, double y, double width, Svg& svg) {
  const double start = y;
  std::int64_t fastest = 1;
  for (const NodeLink& node : fabric.nodes) {
    fastest = std::max({fastest, node.out_kbps, node.in_kbps});
  }
  svg.text(20, y + 24, "Network: " + name, "start", 16);
  svg.text(20, y + 44,
           counted(fabric.nodes.size(), "node") + ", " + counted(fabric.racks.size(), "rack") +
               ", latency " + latency_text(fabric) + "; the fastest node has " +
               rate_text(static_cast<double>(fastest) / 1000),
           "start", 12, "#555");
  double x = 20;
  const auto legend = [&](const char* colour, const char* text) {
    svg.box(x, y + 54, 12, 12, colour);
    svg.text(x + 17, y + 64, text, "start", 11, "#555");
    x += 170;
  };
  legend(kFast, "node at the full rate");
  legend(kMiddle, "at less than full rate");
  legend(kSlow, "at half or less");
  y += kTop;
  const std::vector<RackSummary> racks = summarise(fabric);
  const int per_row = cells_per_row(width);
  for (std::size_t r = 0; r < racks.size(); ++r) {
    const int rows = std::max(1, (racks[r].nodes + per_row - 1) / per_row);
    const double height = kRackHead + rows * (kCell + 4) + kGap;
    const bool is_tight = racks[r].taper > 1;
    svg.box(20, y, width - 40, height, "#f6f7f9", "#c9ced6");
    svg.text(32, y + 20,
             name_of(*racks[r].link, r) + ": " +
                 counted(static_cast<std::size_t>(racks[r].nodes), "node"),
             "start", 13);
    if (racks.size() > 1) {
      svg.text(32, y + 36, uplink_text(racks[r]), "start", 11, is_tight ? kSlow : "#555");
    }
    int index = 0;
    for (const RateGroup& group : racks[r].groups) {
      const double share = static_cast<double>(std::min(group.out_kbps, group.in_kbps)) /
                           static_cast<double>(fastest);
      const char* const colour = share > 0.99 ? kFast : share > 0.5 ? kMiddle : kSlow;
      for (const std::string& node : group.names) {
        svg.box(32 + (index % per_row) * (kCell + 4), y + kRackHead + index / per_row * (kCell + 4),
                kCell, kCell, colour, "none", node + ": " + rates(group.out_kbps, group.in_kbps));
        ++index;
      }
    }
    y += height + 8;
  }
  return y - start;
}

}  // namespace riffle::tools::topo
