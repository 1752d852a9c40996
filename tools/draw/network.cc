#include "tools/draw/network.h"

#include <algorithm>

#include "tools/draw/text.h"
#include "tools/fabric_summary.h"
#include "tools/numbers.h"

namespace riffle::tools {
namespace {

constexpr double kMargin = 16, kGap = 12, kCore = 22, kUplink = 34, kRadius = 12;
constexpr double kLeastRack = 190, kSwitch = 4, kDrop = 26;
constexpr std::size_t kMostRateGroups = 3;
using Anchor = TextStyle::Anchor;

class Diagram {
 public:
  Diagram(Svg& svg, const NetworkDiagram& diagram)
      : svg_(svg),
        diagram_(diagram),
        fabric_(*diagram.fabric),
        racks_(summarise(fabric_)),
        has_labels_(fabric_.nodes.size() <= kLabelledNodes),
        slot_(has_labels_ ? 78 : 30),
        members_(fabric_.racks.size()) {
    for (std::size_t n = 0; n < fabric_.nodes.size(); ++n) {
      const NodeLink& node = fabric_.nodes[n];
      members_[static_cast<std::size_t>(node.rack)].push_back(n);
      fastest_ = std::max({fastest_, node.out_kbps, node.in_kbps});
      is_one_way_ |= node.out_kbps != node.in_kbps;
    }
    widest_ = static_cast<double>(fastest_);
    for (const RackLink& rack : fabric_.racks) {
      widest_ = std::max(widest_, static_cast<double>(std::max(rack.up_kbps, rack.down_kbps)));
    }
  }

  double draw(double y) {
    for (std::size_t first = 0; first < racks_.size();) {
      std::size_t last = first;
      double width = 0, height = 0;
      while (last < racks_.size() &&
             (last == first || width + kGap + rack_width(last) <= svg_.width() - 2 * kMargin)) {
        width += (last > first ? kGap : 0) + rack_width(last);
        height = std::max(height, rack_height(last));
        ++last;
      }
      if (racks_.size() > 1) y = draw_core(y, width, first == 0);
      double x = kMargin;
      for (; first < last; ++first) {
        if (racks_.size() > 1) draw_uplink(first, x + rack_width(first) / 2, y);
        draw_rack(first, x, y + (racks_.size() > 1 ? kUplink : 0), height);
        x += rack_width(first) + kGap;
      }
      y += (racks_.size() > 1 ? kUplink : 0) + height + kGap;
    }
    return y;
  }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (std::size_t r = 0; r < std::min(racks_.size(), kRackPaints.size()); ++r) {
      std::string text = "node of " + racks_[r].name;
      if (racks_.size() == 1) text = "node, with its rank";
      if (r + 1 == kRackPaints.size() && r + 1 < racks_.size()) {
        text += "; further racks in the same colours again";
      }
      entries.push_back({LegendEntry::Shape::kCircle, rack_paint(r), text});
    }
    entries.push_back({LegendEntry::Shape::kLine, Paint::kEdge,
                       "link, the wider the faster; sending left, receiving right"});
    const std::set<Paint> used = link_paints();
    if (used.contains(Paint::kAmber)) {
      entries.push_back({LegendEntry::Shape::kLine, Paint::kAmber, "slower than the fastest node"});
    }
    if (used.contains(Paint::kAlert)) {
      entries.push_back({LegendEntry::Shape::kLine, Paint::kAlert, "limits the all-reduce"});
    }
    return entries;
  }

 private:
  Paint paint_of(const std::string& link, bool is_slow) const {
    if (diagram_.limits.contains(link)) return Paint::kAlert;
    return is_slow ? Paint::kAmber : Paint::kEdge;
  }
  Paint out_paint(const NodeLink& node) const {
    return paint_of("sending of node " + node.name, node.out_kbps < fastest_);
  }
  Paint in_paint(const NodeLink& node) const {
    return paint_of("receiving of node " + node.name, node.in_kbps < fastest_);
  }
  Paint up_paint(const RackLink& rack) const {
    return paint_of("uplink of rack " + rack.name, false);
  }
  Paint down_paint(const RackLink& rack) const {
    return paint_of("downlink of rack " + rack.name, false);
  }

  std::set<Paint> link_paints() const {
    std::set<Paint> used;
    for (const NodeLink& node : fabric_.nodes) used.insert({out_paint(node), in_paint(node)});
    for (const RackLink& rack : fabric_.racks) {
      if (racks_.size() > 1) used.insert({up_paint(rack), down_paint(rack)});
    }
    return used;
  }

  double line_width(std::int64_t kbps) const {
    return std::max(1.5, 8 * static_cast<double>(kbps) / widest_);
  }

  std::size_t per_row(std::size_t rack) const {
    auto most = static_cast<std::size_t>((svg_.width() - 2 * kMargin - 12) / slot_);
    // Not much wider than high, so that several racks stand beside each other.
    if (racks_.size() > 1) most = std::min<std::size_t>(most, has_labels_ ? 5 : 8);
    const std::size_t members = std::max<std::size_t>(members_[rack].size(), 1);
    const std::size_t rows = (members + most - 1) / most;
    return (members + rows - 1) / rows;
  }
  double rack_width(std::size_t rack) const {
    return std::max(kLeastRack, static_cast<double>(per_row(rack)) * slot_ + 12);
  }

  // What stands at the top of a rack's box.
  std::vector<std::string> head_of(std::size_t r) const {
    const RackSummary& rack = racks_[r];
    std::vector<std::string> lines;
    if (racks_.size() > 1) {
      lines.push_back(uplink_text(rack));
      if (const std::string taper = taper_text(rack); !taper.empty()) lines.push_back(taper);
    }
    for (std::size_t g = 0; !has_labels_ && g < rack.groups.size(); ++g) {
      if (g == kMostRateGroups) {
        lines.push_back(printed("and %zu more rates", rack.groups.size() - g));
        break;
      }
      const RateGroup& group = rack.groups[g];
      lines.push_back(printed("%zu × ", group.names.size()) +
                      rates_text(group.out_kbps, group.in_kbps));
    }
    return lines;
  }

  double head_height(std::size_t rack) const {
    return 26 + 15 * static_cast<double>(head_of(rack).size());
  }
  double row_height() const {
    if (!has_labels_) return 2 * kRadius + 6;
    return kSwitch + kDrop + 2 * kRadius + (is_one_way_ ? 46 : 32);
  }
  double rack_height(std::size_t rack) const {
    const std::size_t rows = (members_[rack].size() + per_row(rack) - 1) / per_row(rack);
    return head_height(rack) + static_cast<double>(rows) * row_height() + 6;
  }

  double draw_core(double y, double width, bool is_first) {
    svg_.framed(kMargin, y, width, kCore, Paint::kArea, Paint::kEdge, "the network between racks");
    svg_.text(kMargin + width / 2, y + 15, is_first ? "core switch" : "the same core switch",
              {.anchor = Anchor::kMiddle, .on = Paint::kArea});
    return y + kCore;
  }

  void draw_uplink(std::size_t r, double x, double y) {
    const RackLink& rack = fabric_.racks[r];
    const auto draw_one = [&](double at, Paint paint, std::int64_t kbps, const char* what) {
      const std::string rate = kbps == 0 ? "no limit" : rate_text(static_cast<double>(kbps) / 1000);
      svg_.line(at, y, at, y + kUplink, paint, {.width = line_width(kbps)},
                what + racks_[r].name + ": " + rate);
    };
    draw_one(x - 6, up_paint(rack), rack.up_kbps, "uplink of ");
    draw_one(x + 6, down_paint(rack), rack.down_kbps, "downlink of ");
  }

  void draw_rack(std::size_t r, double x, double y, double height) {
    svg_.framed(x, y, rack_width(r), height, Paint::kArea, Paint::kEdge);
    const std::string count = counted(members_[r].size(), "node");
    const std::string head = racks_.size() > 1 ? racks_[r].name + ": " + count : count;
    svg_.text(x + 10, y + 18, shortened(head, rack_width(r) - 20, 13),
              {.size = 13, .on = Paint::kArea, .is_bold = true});
    double line = y + 18;
    const RackLink& link = fabric_.racks[r];
    const bool limits =
        racks_.size() > 1 && (up_paint(link) == Paint::kAlert || down_paint(link) == Paint::kAlert);
    for (const std::string& text : head_of(r)) {
      line += 15;
      const bool is_uplink = limits && line < y + 40;
      svg_.text(x + 10, line, shortened(text, rack_width(r) - 20, 11.5),
                {.size = 11.5,
                 .ink = is_uplink ? Paint::kAlertInk : Paint::kFaint,
                 .on = Paint::kArea,
                 .is_bold = is_uplink});
    }
    for (std::size_t m = 0; m < members_[r].size(); ++m) {
      const double column = static_cast<double>(m % per_row(r));
      const double row = static_cast<double>(m / per_row(r));
      draw_member(members_[r][m], x + 6 + slot_ * (column + 0.5),
                  y + head_height(r) + row_height() * row);
    }
  }

  void draw_member(std::size_t n, double x, double y) {
    const NodeLink& node = fabric_.nodes[n];
    const std::string tip = node.name + ": " + rates_text(node.out_kbps, node.in_kbps);
    const int rank = static_cast<int>(n);
    if (!has_labels_) {
      draw_node(svg_, x, y + kRadius, fabric_, rank, tip);
      const Paint paint = std::max(out_paint(node), in_paint(node));
      const bool limits = diagram_.limits.contains("sending of node " + node.name) ||
                          diagram_.limits.contains("receiving of node " + node.name);
      if (paint != Paint::kEdge) {
        svg_.ring(x, y + kRadius, kRadius, limits ? Paint::kAlert : Paint::kAmber, 3);
      }
      return;
    }
    svg_.box(x - slot_ / 2, y, slot_, kSwitch, Paint::kEdge);
    svg_.line(x - 5, y + kSwitch, x - 5, y + kDrop + 8, out_paint(node),
              {.width = line_width(node.out_kbps)}, tip);
    svg_.line(x + 5, y + kSwitch, x + 5, y + kDrop + 8, in_paint(node),
              {.width = line_width(node.in_kbps)}, tip);
    draw_node(svg_, x, y + kSwitch + kDrop + kRadius - 4, fabric_, rank, tip);
    double line = y + kSwitch + kDrop + 2 * kRadius + 9;
    const auto label = [&](const std::string& text, bool is_slow) {
      svg_.text(x, line, shortened(text, slot_ - 2, 10.5),
                {.anchor = Anchor::kMiddle, .size = 10.5, .on = Paint::kArea, .is_bold = is_slow});
      line += 14;
    };
    label(node.name, false);
    const auto rate = [](std::int64_t kbps) { return rate_text(static_cast<double>(kbps) / 1000); };
    if (node.out_kbps == node.in_kbps) {
      label(rate(node.out_kbps), node.out_kbps < fastest_);
    } else {
      label("↑" + rate(node.out_kbps), node.out_kbps < fastest_);
      label("↓" + rate(node.in_kbps), node.in_kbps < fastest_);
    }
  }

  Svg& svg_;
  const NetworkDiagram& diagram_;
  const Fabric& fabric_;
  const std::vector<RackSummary> racks_;
  const bool has_labels_;
  const double slot_;
  std::vector<std::vector<std::size_t>> members_;  // of each rack
  std::int64_t fastest_ = 1;
  double widest_ = 1;
  bool is_one_way_ = false;  // some node sends and receives at different rates
};

}  // namespace

std::vector<LegendEntry> legend_of(const NetworkDiagram& diagram) {
  Svg none(0, "");
  return Diagram(none, diagram).legend();
}

double draw_network(Svg& svg, const NetworkDiagram& diagram, double y) {
  return Diagram(svg, diagram).draw(y);
}

void draw_node(Svg& svg, double x, double y, const Fabric& fabric, int rank,
               const std::string& tip) {
  const NodeLink& node = fabric.nodes[static_cast<std::size_t>(rank)];
  const Paint paint = rack_paint(static_cast<std::size_t>(node.rack));
  svg.circle(x, y, kRadius, paint, tip);
  svg.text(
      x, y + 4, std::to_string(rank),
      {.anchor = Anchor::kMiddle, .size = rank < 100 ? 11.0 : 9.0, .on = paint, .is_bold = true});
}

}  // namespace riffle::tools
