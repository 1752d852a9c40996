#include "tools/draw/heat_map.h"

#include <algorithm>

#include "tools/draw/legend.h"
#include "tools/draw/text.h"

namespace riffle::tools {
namespace {

constexpr double kMargin = 16, kLeastWidth = 640, kNameWidth = 150;
constexpr double kSteep = 0.5;  // of the width of a column's name goes to the right

struct Layout {
  double cell, name_size, name_width = 0;
  bool has_labels, has_names;

  explicit Layout(const HeatMap& map)
      : cell(map.names.size() <= 16   ? 48
             : map.names.size() <= 64 ? 16
                                      : 6),
        name_size(map.names.size() <= 16 ? 12 : 10),
        has_labels(map.names.size() <= 16),
        has_names(map.names.size() <= 64) {
    for (const std::string& name : map.names) {
      name_width = std::max(name_width, std::min(kNameWidth, text_width(name, name_size)));
    }
    if (!has_names) name_width = 0;
  }
};

void draw_cell(Svg& svg, const HeatMap& map, const Layout& layout, std::size_t from, std::size_t to,
               double x, double y) {
  const std::string pair = map.names[from] + " to " + map.names[to] + ": ";
  const std::optional<HeatMap::Cell>& cell = map.cells[from][to];
  const double side = layout.cell - (layout.cell > 8 ? 1 : 0);
  if (!cell) {
    svg.box(x, y, side, side, Paint::kNoData, pair + map.missing);
    return;
  }
  const Paint paint = map.ranges[cell->range].paint;
  svg.box(x, y, side, side, paint, pair + cell->tip);
  if (!layout.has_labels) return;
  svg.text(x + side / 2, y + side / 2 + 4, shortened(cell->label, side - 2, 11),
           {.anchor = TextStyle::Anchor::kMiddle, .size = 11, .on = paint});
}

}  // namespace

std::string draw(const HeatMap& map) {
  const Layout layout(map);
  const auto n = static_cast<double>(map.names.size());
  const double left = kMargin + layout.name_width + 8;
  Svg svg(std::max(kLeastWidth, left + n * layout.cell + kSteep * layout.name_width + kMargin),
          map.title);
  double y = kMargin;
  if (!map.finding.empty()) y = draw_title(svg, map.finding, kMargin, y);
  y = draw_title(svg, map.title, kMargin, y, {.size = 13, .is_bold = map.finding.empty()});
  std::vector<LegendEntry> legend;
  for (const HeatMap::Range& range : map.ranges) {
    legend.push_back({LegendEntry::Shape::kBox, range.paint, range.text});
  }
  legend.push_back({LegendEntry::Shape::kBox, Paint::kNoData, map.missing});
  y = draw_legend(svg, legend, kMargin, y) + 0.9 * layout.name_width + 10;
  for (std::size_t i = 0; i < map.names.size(); ++i) {
    const double at = layout.cell * static_cast<double>(i);
    if (layout.has_names) {
      const std::string name = shortened(map.names[i], kNameWidth, layout.name_size);
      svg.text(left - 6, y + at + layout.cell / 2 + 4, name,
               {.anchor = TextStyle::Anchor::kEnd, .size = layout.name_size});
      svg.text(left + at + layout.cell / 2 + 3, y - 5, name,
               {.size = layout.name_size, .angle = -60});
    }
    for (std::size_t j = 0; j < map.names.size(); ++j) {
      if (i == j) continue;
      draw_cell(svg, map, layout, i, j, left + layout.cell * static_cast<double>(j), y + at);
    }
  }
  return svg.document();
}

}  // namespace riffle::tools
