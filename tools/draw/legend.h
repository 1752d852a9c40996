// What the colours of a drawing mean, and its title.
#pragma once

#include <string>
#include <vector>

#include "tools/draw/svg.h"

namespace riffle::tools {

struct LegendEntry {
  enum class Shape { kBox, kCircle, kLine, kDashed };
  Shape shape = Shape::kBox;
  Paint paint = Paint::kEdge;
  std::string text;
};

// Both return the y below them; `y` is their upper edge. As many lines as it takes.
double draw_legend(Svg& svg, const std::vector<LegendEntry>& entries, double x, double y);
double draw_title(Svg& svg, const std::string& title, double x, double y, const TextStyle& style);
inline double draw_title(Svg& svg, const std::string& title, double x, double y) {
  return draw_title(svg, title, x, y, {.size = 15, .is_bold = true});
}

}  // namespace riffle::tools
