// Bars from left to right, one below the other, each perhaps cut into parts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/draw/legend.h"

namespace riffle::tools {

struct BarChart {
  struct Bar {
    std::string name;
    std::vector<double> parts;
    std::string label;  // behind the bar
    Paint paint = Paint::kBlue;
    bool is_bold = false;
  };
  struct Mark {  // a line across all bars, in the legend by its label
    double at;
    std::string label;
  };
  std::string title;
  std::vector<Bar> bars;
  std::vector<LegendEntry> legend;
  std::optional<Mark> mark;
  double most = 0;  // what the full width stands for; 0: the longest bar
};

std::string draw(const BarChart& chart);

}  // namespace riffle::tools
