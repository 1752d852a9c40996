// A plan as a drawing: what it takes, the network with what limits, the groups of every level.
#include <algorithm>

#include "tools/draw/network.h"
#include "tools/draw/text.h"
#include "tools/numbers.h"
#include "tools/plan/plan_view.h"

namespace riffle::tools {
namespace {

constexpr double kWidth = 920, kMargin = 16, kGap = 10, kPitch = 50, kRow = 52, kPad = 8;
constexpr std::size_t kMaxGroups = 128;   // drawn per level
constexpr std::size_t kMaxMembers = 256;  // drawn per group
using Anchor = TextStyle::Anchor;

bool owns_equally(const Group& group) {
  Share least = kShareUnits, most = 0;
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    const Share owns = group.cuts[m + 1] - group.cuts[m];
    least = std::min(least, owns);
    most = std::max(most, owns);
  }
  return most - least <= 1;  // cuts are rounded
}

// All links that need as long as the slowest are the limit.
std::set<std::string> limits_of(const PlanView& view) {
  std::set<std::string> names;
  for (const LinkTime& link : view.links) {
    if (link.time_us < 0.999 * view.links.front().time_us) break;
    names.insert(link.name);
  }
  return names;
}

std::string head_of(const Group& group) {
  std::string head = std::string(exchange_of(group.pattern).name()) + " on " +
                     share_text(group.end() - group.begin());
  if (owns_equally(group)) head += ", each owns " + share_text(group.cuts[1] - group.cuts[0]);
  return head;
}

// One group: its members in a row or several, what each owns below where that differs.
class GroupBox {
 public:
  GroupBox(const Group& group, const Fabric& fabric, bool has_head)
      : group_(group), fabric_(fabric), head_(has_head ? head_of(group) : "") {
    shown_ = std::min(group.members.size(), kMaxMembers);
    if (shown_ < group.members.size()) {
      head_ += printed(" %zu more members", group.members.size() - shown_);
    }
    const auto most = static_cast<std::size_t>((kWidth - 2 * kMargin - 2 * kPad) / kPitch);
    const std::size_t rows = (shown_ + most - 1) / most;
    per_row_ = (shown_ + rows - 1) / rows;
    height_ = head_height() + row_height() * static_cast<double>(rows);
  }

  double width() const {
    return std::max(static_cast<double>(per_row_) * kPitch, text_width(head_, 11)) + 2 * kPad;
  }
  double height() const { return height_; }

  void draw(Svg& svg, double x, double y, double height) const {
    svg.framed(x, y, width(), height, Paint::kArea, Paint::kEdge);
    svg.text(x + kPad, y + 16, head_, {.size = 11, .ink = Paint::kFaint, .on = Paint::kArea});
    for (std::size_t m = 0; m < shown_; ++m) {
      const double at = x + kPad + kPitch * (static_cast<double>(m % per_row_) + 0.5);
      const double middle =
          y + head_height() + 14 + row_height() * static_cast<double>(m / per_row_);
      if (m % per_row_ > 0) {
        svg.line(at - kPitch + 12, middle, at - 12, middle, Paint::kEdge, {.width = 2});
      }
      const int rank = group_.members[m];
      const std::string owns = share_text(group_.cuts[m + 1] - group_.cuts[m]);
      draw_node(svg, at, middle, fabric_, rank,
                fabric_.nodes[static_cast<std::size_t>(rank)].name + " owns " + owns);
      if (owns_equally(group_)) continue;
      svg.text(at, middle + 26, owns,
               {.anchor = Anchor::kMiddle, .size = 10.5, .on = Paint::kArea});
    }
  }

 private:
  double head_height() const { return head_.empty() ? 6 : 24; }
  double row_height() const { return owns_equally(group_) ? kRow - 18 : kRow; }

  const Group& group_;
  const Fabric& fabric_;
  std::string head_;
  std::size_t shown_ = 0, per_row_ = 1;
  double height_ = 0;
};

double draw_boxes(Svg& svg, const std::vector<GroupBox>& boxes, double y) {
  for (std::size_t first = 0; first < boxes.size();) {
    std::size_t last = first;
    double width = 0, height = 0;
    while (last < boxes.size() &&
           (last == first || width + kGap + boxes[last].width() <= kWidth - 2 * kMargin)) {
      width += boxes[last].width() + (last > first ? kGap : 0);
      height = std::max(height, boxes[last].height());
      ++last;
    }
    double x = kMargin;
    for (; first < last; ++first) {
      boxes[first].draw(svg, x, y, height);
      x += boxes[first].width() + kGap;
    }
    y += height + kGap;
  }
  return y;
}

// `name` is "Level 1 of 2". What holds for all groups stands in the title.
double draw_level(Svg& svg, const std::string& name, const Level& level, const Fabric& fabric,
                  double y) {
  const std::string common = head_of(level.groups.front());
  const bool is_common = std::all_of(level.groups.begin(), level.groups.end(),
                                     [&](const Group& g) { return head_of(g) == common; });
  std::string title = name + ": " + counted(level.groups.size(), "group");
  if (is_common) title += ", " + common;
  y = draw_title(svg, title, kMargin, y, {.size = 13, .is_bold = true});
  std::vector<GroupBox> boxes;
  for (std::size_t g = 0; g < level.groups.size() && g < kMaxGroups; ++g) {
    boxes.emplace_back(level.groups[g], fabric, !is_common);
  }
  y = draw_boxes(svg, boxes, y);
  if (boxes.size() == level.groups.size()) return y;
  svg.text(kMargin, y + 12, printed("and %zu more groups", level.groups.size() - boxes.size()));
  return y + 22;
}

// What the plan takes, beside what no other could beat.
std::string result_text(const PlanView& view) {
  const PlanChoice& choice = *view.choice;
  std::string text = choice.plans.name + ": " + us_text(choice.time_us) + " predicted for " +
                     bytes_text(view.bytes);
  if (choice.bound_us <= 0) return text;
  return text + printed(", %.3f × the bound of %s", choice.time_us / choice.bound_us,
                        us_text(choice.bound_us).c_str());
}

}  // namespace

std::string to_svg(const PlanView& view) {
  const GroupPlan& plan = view.choice->plans.lanes.front();
  const NetworkDiagram network{view.fabric, limits_of(view)};
  Svg svg(kWidth, "riffle plan: " + result_text(view));
  double y = draw_title(svg, result_text(view), kMargin, kMargin);
  y = draw_title(svg, view.limit_text(), kMargin, y, {.size = 12.5});
  y = draw_legend(svg, legend_of(network), kMargin, y) + 4;
  y = draw_network(svg, network, y) + 6;
  for (std::size_t l = 0; l < plan.levels.size(); ++l) {
    y = draw_level(svg, printed("Level %zu of %zu", l + 1, plan.levels.size()), plan.levels[l],
                   *view.fabric, y) +
        4;
  }
  const std::size_t lanes = view.choice->plans.lanes.size();
  if (lanes > 1) {
    draw_title(svg,
               printed("A share is of the buffer. Shown is lane 1 of %zu; the others differ in the "
                       "order of nodes.",
                       lanes),
               kMargin, y, {.size = 12, .ink = Paint::kFaint});
  }
  return svg.document();
}

}  // namespace riffle::tools
