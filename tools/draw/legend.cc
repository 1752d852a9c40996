#include "tools/draw/legend.h"

#include "tools/draw/text.h"

namespace riffle::tools {
namespace {

constexpr double kSwatch = 14, kLine = 20, kSize = 11.5;

void draw_swatch(Svg& svg, const LegendEntry& entry, double x, double y) {
  const double middle = y + kSwatch / 2;
  switch (entry.shape) {
    case LegendEntry::Shape::kBox:
      svg.framed(x, y, kSwatch, kSwatch, entry.paint, Paint::kEdge);
      break;
    case LegendEntry::Shape::kCircle:
      svg.circle(x + kSwatch / 2, middle, kSwatch / 2, entry.paint);
      break;
    case LegendEntry::Shape::kLine:
    case LegendEntry::Shape::kDashed:
      svg.line(x, middle, x + kSwatch, middle, entry.paint,
               {.width = 3, .is_dashed = entry.shape == LegendEntry::Shape::kDashed});
      break;
  }
}

}  // namespace

double draw_legend(Svg& svg, const std::vector<LegendEntry>& entries, double x, double y) {
  svg.begin_group("legend");
  double at = x;
  for (const LegendEntry& entry : entries) {
    const double width = kSwatch + 6 + text_width(entry.text, kSize) + 16;
    if (at > x && at + width > svg.width()) {
      at = x;
      y += kLine;
    }
    draw_swatch(svg, entry, at, y + 2);
    svg.text(at + kSwatch + 6, y + 13, entry.text, {.size = kSize});
    at += width;
  }
  svg.end_group();
  return entries.empty() ? y : y + kLine + 4;
}

double draw_title(Svg& svg, const std::string& title, double x, double y, const TextStyle& style) {
  for (const std::string& line : wrapped(title, svg.width() - 2 * x, style.size)) {
    svg.text(x, y + style.size, line, style);
    y += style.size * 1.4;
  }
  return y + 4;
}

}  // namespace riffle::tools
