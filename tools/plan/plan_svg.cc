#include <algorithm>
#include <map>

#include "tools/numbers.h"
#include "tools/plan/plan_view.h"
#include "tools/svg.h"

namespace riffle::tools {
namespace {

constexpr std::size_t kMaxGroups = 128;  // drawn per level
constexpr double kLeft = 40, kNodeGap = 34, kRackGap = 26, kTop = 60, kRow = 18;
const char* const kLimit = "#c0392b";
const char* const kPlain = "#2c6fbb";

class Drawing {
 public:
  explicit Drawing(const PlanView& view) : view_(view), fabric_(*view.fabric) {
    place_nodes();
    height_ = kTop + 130;
    for (const Level& level : levels()) {
      height_ += 34 + kRow * static_cast<double>(std::min(level.groups.size(), kMaxGroups));
    }
  }

  std::string draw() {
    Svg svg(std::max(width_, 900.0), height_);
    svg.text(kLeft, 24, view_.headline(), "start", 14);
    draw_network(svg);
    double y = kTop + 140;
    for (std::size_t l = 0; l < levels().size(); ++l) y = draw_level(svg, l, y);
    return svg.document();
  }

 private:
  const std::vector<Level>& levels() const { return view_.choice->plans.lanes.front().levels; }

  // Rack by rack from left to right.
  void place_nodes() {
    std::map<int, std::vector<std::size_t>> racks;
    for (std::size_t n = 0; n < fabric_.nodes.size(); ++n)
      racks[fabric_.nodes[n].rack].push_back(n);
    x_.resize(fabric_.nodes.size());
    double x = kLeft + kNodeGap / 2;
    for (const auto& [rack, members] : racks) {
      rack_begin_[rack] = x - kNodeGap / 2;
      for (const std::size_t n : members) {
        x_[n] = x;
        x += kNodeGap;
      }
      rack_end_[rack] = x - kNodeGap / 2;
      x += kRackGap;
    }
    width_ = x + 20;
    for (const NodeLink& node : fabric_.nodes) {
      most_kbps_ = std::max({most_kbps_, node.out_kbps, node.in_kbps});
    }
  }

  // All links that need as long as the slowest are the limit.
  std::string colour_of(const std::string& kind, const std::string& name) const {
    for (const LinkTime& link : view_.links) {
      if (link.time_us < 0.999 * view_.links.front().time_us) break;
      if (link.name == kind + name) return kLimit;
    }
    return kPlain;
  }

  // A line is as thick as its rate; sending left, receiving right of each other.
  double thickness(std::int64_t kbps) const {
    return std::max(1.0, 7 * static_cast<double>(kbps) / static_cast<double>(most_kbps_));
  }

  void draw_network(Svg& svg) const {
    for (const auto& [rack, begin] : rack_begin_) {
      const RackLink& link = fabric_.racks[static_cast<std::size_t>(rack)];
      const double middle = (begin + rack_end_.at(rack)) / 2;
      svg.box(begin, kTop + 20, rack_end_.at(rack) - begin, 8, "#888", "none", "rack " + link.name);
      svg.text(middle, kTop + 14, link.name, "end", 11);
      if (link.up_kbps == 0 && link.down_kbps == 0) continue;
      const auto draw_link = [&](double x, const char* kind, std::int64_t kbps) {
        svg.line(x, kTop - 16, x, kTop + 20, colour_of(kind, link.name),
                 std::min(10.0, thickness(kbps)),
                 kind + link.name + ", " + rate_text(static_cast<double>(kbps) / 1000));
      };
      draw_link(middle + 10, "uplink of rack ", link.up_kbps);
      draw_link(middle + 22, "downlink of rack ", link.down_kbps);
    }
    for (std::size_t n = 0; n < x_.size(); ++n) {
      const NodeLink& node = fabric_.nodes[n];
      const auto draw_link = [&](double x, const char* kind, std::int64_t kbps) {
        svg.line(x, kTop + 28, x, kTop + 62, colour_of(kind, node.name), thickness(kbps),
                 kind + node.name + ", " + rate_text(static_cast<double>(kbps) / 1000));
      };
      draw_link(x_[n] - 5, "sending of node ", node.out_kbps);
      draw_link(x_[n] + 5, "receiving of node ", node.in_kbps);
      svg.circle(x_[n], kTop + 68, 7, "#222", node.name);
      svg.text(x_[n] + 4, kTop + 86, node.name, "start", 10, "#222", 40);
    }
  }

  double draw_level(Svg& svg, std::size_t l, double y) const {
    const auto& groups = levels()[l].groups;
    svg.text(kLeft - 20, y + 12,
             printed("level %zu of %zu: %zu group%s; a dot is as large as the share its node owns",
                     l + 1, levels().size(), groups.size(), groups.size() == 1 ? "" : "s"),
             "start", 12);
    y += 28;
    for (std::size_t g = 0; g < groups.size() && g < kMaxGroups; ++g, y += kRow) {
      draw_group(svg, groups[g], y);
    }
    return y + 6;
  }

  void draw_group(Svg& svg, const Group& group, double y) const {
    double from = x_[static_cast<std::size_t>(group.members.front())], to = from;
    for (const int m : group.members) {
      from = std::min(from, x_[static_cast<std::size_t>(m)]);
      to = std::max(to, x_[static_cast<std::size_t>(m)]);
    }
    const GroupExchange& exchange = exchange_of(group.pattern);
    const bool meets_all = exchange.depth(static_cast<int>(group.members.size())) == 1;
    svg.line(from, y, to, y, "#aaa", meets_all ? 3 : 1, exchange.name());
    Share most = 1;
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      most = std::max(most, group.cuts[m + 1] - group.cuts[m]);
    }
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      const Share owns = group.cuts[m + 1] - group.cuts[m];
      const auto node = static_cast<std::size_t>(group.members[m]);
      const double share = static_cast<double>(owns) / static_cast<double>(most);
      svg.circle(x_[node], y, 2.5 + 4 * share, owns == 0 ? "#bbb" : kPlain,
                 fabric_.nodes[node].name +
                     printed(" owns %.3g %%", 100.0 * static_cast<double>(owns) / kShareUnits));
    }
  }

  const PlanView& view_;
  const Fabric& fabric_;
  std::vector<double> x_;
  std::map<int, double> rack_begin_, rack_end_;
  std::int64_t most_kbps_ = 1;
  double width_ = 0, height_ = 0;
};

}  // namespace

std::string to_svg(const PlanView& view) { return Drawing(view).draw(); }

}  // namespace riffle::tools
