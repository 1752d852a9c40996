// Values over time or steps: lines, stages in which something was different, marks where something
// happened.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/draw/palette.h"

namespace riffle::tools {

struct Axis {
  std::function<std::string(double)> text;  // of a value
  double most = 0;                          // 0: that of the data
};

struct LineChart {
  struct Series {
    std::string name;
    Paint paint = Paint::kBlue;
    std::vector<std::pair<double, double>> points;
    bool is_dashed = false;
    bool is_stepped = false;  // a value holds until the next point
    bool is_right = false;    // measured by the right axis
  };
  struct Stage {
    double from, to;
    std::string label;
  };
  struct Mark {
    double at;
    std::string label, tip;
  };
  std::string title;
  Axis x, left;
  std::optional<Axis> right;
  std::vector<Series> series;
  std::vector<Stage> stages;
  std::vector<Mark> marks;
  std::string mark_text;  // what a mark is; for the legend
};

std::string draw(const LineChart& chart);

// About `count` round values from 0 on, the last one at least `most`.
std::vector<double> ticks(double most, int count);

}  // namespace riffle::tools
