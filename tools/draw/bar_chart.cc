#include "tools/draw/bar_chart.h"

#include <algorithm>
#include <numeric>

#include "tools/draw/text.h"

namespace riffle::tools {
namespace {

constexpr double kWidth = 860, kMargin = 12, kRow = 28, kBar = 20, kSize = 12.5, kNames = 300;

double length_of(const BarChart::Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
}

}  // namespace

std::string draw(const BarChart& chart) {
  double names = 0, labels = 0, most = chart.mark ? chart.mark->at : 0;
  for (const BarChart::Bar& bar : chart.bars) {
    names = std::max(names, std::min(kNames, text_width(bar.name, kSize)));
    labels = std::max(labels, text_width(bar.label, kSize));
    most = std::max(most, length_of(bar));
  }
  if (chart.most > 0) most = chart.most;
  if (most <= 0) most = 1;
  Svg svg(kWidth, chart.title);
  const double left = kMargin + names + 10;
  const double scale = (kWidth - left - labels - 10 - kMargin) / most;
  std::vector<LegendEntry> legend = chart.legend;
  if (chart.mark) {
    legend.push_back({LegendEntry::Shape::kDashed, Paint::kAlert, chart.mark->label});
  }
  double y = draw_legend(svg, legend, left, draw_title(svg, chart.title, kMargin, kMargin)) + 4;
  const double top = y;
  for (const BarChart::Bar& bar : chart.bars) {
    svg.text(left - 10, y + 15, shortened(bar.name, kNames, kSize),
             {.anchor = TextStyle::Anchor::kEnd, .size = kSize, .is_bold = bar.is_bold});
    if (chart.most > 0) svg.box(left, y, most * scale, kBar, Paint::kPale);
    double x = left;
    for (const double part : bar.parts) {
      const double length = part * scale;
      svg.box(x, y, std::max(length - (bar.parts.size() > 1 ? 1.5 : 0), 0.5), kBar, bar.paint,
              bar.name + ": " + bar.label);
      x += length;
    }
    svg.text(chart.most > 0 ? left + most * scale + 8 : x + 6, y + 15, bar.label,
             {.size = kSize, .is_bold = bar.is_bold});
    y += kRow;
  }
  if (chart.mark) {
    const double x = left + chart.mark->at * scale;
    svg.line(x, top - 4, x, y - kRow + kBar + 4, Paint::kAlert, {.width = 2, .is_dashed = true});
  }
  return svg.document();
}

}  // namespace riffle::tools
