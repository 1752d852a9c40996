#include "tools/draw/line_chart.h"

#include <algorithm>
#include <cmath>

#include "tools/draw/legend.h"
#include "tools/draw/text.h"

namespace riffle::tools {
namespace {

constexpr double kWidth = 860, kPlot = 190, kMargin = 12, kSize = 11.5;
using Anchor = TextStyle::Anchor;

class Plot {
 public:
  explicit Plot(const LineChart& chart) : chart_(chart), svg_(kWidth, chart.title) {
    double x = chart.x.most, left = chart.left.most, right = chart.right ? chart.right->most : 0;
    for (const LineChart::Series& series : chart.series) {
      for (const auto& [at, value] : series.points) {
        if (chart.x.most == 0) x = std::max(x, at);
        double& most = series.is_right ? right : left;
        if ((series.is_right ? chart.right->most : chart.left.most) == 0) {
          most = std::max(most, value);
        }
      }
    }
    x_most_ = x > 0 ? x : 1;
    left_ticks_ = ticks(left, 4);
    if (chart.right) right_ticks_ = ticks(right, 4);
    begin_ = kMargin + widest(left_ticks_, chart.left) + 8;
    end_ = kWidth - kMargin - 12 - (chart.right ? widest(right_ticks_, *chart.right) : 0);
  }

  std::string draw() {
    double y = draw_title(svg_, chart_.title, kMargin, kMargin);
    top_ = draw_legend(svg_, legend(), kMargin, y) + 2;
    if (!chart_.stages.empty()) top_ += 18;
    if (!chart_.marks.empty()) top_ += 18;
    for (const LineChart::Stage& stage : chart_.stages) draw_stage(stage);
    draw_axes();
    double free = 0;  // marks that would cover another one's label go without
    for (const LineChart::Mark& mark : chart_.marks) {
      const double x = x_of(mark.at);
      svg_.line(x, top_, x, top_ + kPlot, Paint::kSlate, {.width = 1.5, .is_dashed = true},
                mark.tip);
      const double width = text_width(mark.label, kSize) / 2 + 2;
      if (x - width < free) continue;
      svg_.text(x, top_ - 5, mark.label,
                {.anchor = Anchor::kMiddle, .size = kSize, .is_bold = true});
      free = x + width;
    }
    for (const LineChart::Series& series : chart_.series) draw_series(series);
    return svg_.document();
  }

 private:
  static double widest(const std::vector<double>& values, const Axis& axis) {
    double width = 0;
    for (const double value : values) width = std::max(width, text_width(axis.text(value), kSize));
    return width;
  }

  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries;
    for (const LineChart::Series& series : chart_.series) {
      entries.push_back({series.is_dashed ? LegendEntry::Shape::kDashed : LegendEntry::Shape::kLine,
                         series.paint, series.name});
    }
    if (!chart_.marks.empty()) {
      entries.push_back({LegendEntry::Shape::kDashed, Paint::kSlate, chart_.mark_text});
    }
    return entries;
  }

  double x_of(double at) const {
    return begin_ + (end_ - begin_) * std::clamp(at / x_most_, 0.0, 1.0);
  }
  double y_of(double value, bool is_right) const {
    const double most = (is_right ? right_ticks_ : left_ticks_).back();
    return top_ + kPlot * (1 - std::clamp(value / most, 0.0, 1.0));
  }

  void draw_stage(const LineChart::Stage& stage) {
    const double from = x_of(stage.from), to = x_of(stage.to);
    svg_.box(from, top_, to - from, kPlot, Paint::kArea);
    const double half = text_width(stage.label, kSize) / 2;
    svg_.text(std::clamp((from + to) / 2, kMargin + half, kWidth - kMargin - half),
              top_ - (chart_.marks.empty() ? 5 : 23), stage.label,
              {.anchor = Anchor::kMiddle, .size = kSize});
  }

  void draw_axes() {
    for (const double value : left_ticks_) {
      const double y = y_of(value, false);
      svg_.line(begin_, y, end_, y, Paint::kEdge, {.width = 0.5});
      svg_.text(begin_ - 6, y + 4, chart_.left.text(value),
                {.anchor = Anchor::kEnd, .size = kSize, .ink = Paint::kFaint});
    }
    for (const double value : right_ticks_) {
      svg_.text(end_ + 6, y_of(value, true) + 4, chart_.right->text(value),
                {.size = kSize, .ink = Paint::kFaint});
    }
    for (const double at : ticks(x_most_, 6)) {
      if (at > x_most_ * 1.0001) continue;
      svg_.text(x_of(at), top_ + kPlot + 16, chart_.x.text(at),
                {.anchor = Anchor::kMiddle, .size = kSize, .ink = Paint::kFaint});
    }
  }

  void draw_series(const LineChart::Series& series) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [at, value] : series.points) {
      const double y = y_of(value, series.is_right);
      if (series.is_stepped && !points.empty()) points.emplace_back(x_of(at), points.back().second);
      points.emplace_back(x_of(at), y);
    }
    svg_.polyline(points, series.paint, {.width = 2, .is_dashed = series.is_dashed});
  }

  const LineChart& chart_;
  Svg svg_;
  double x_most_ = 1, begin_ = 0, end_ = 0, top_ = 0;
  std::vector<double> left_ticks_, right_ticks_;
};

}  // namespace

std::vector<double> ticks(double most, int count) {
  if (!(most > 0)) most = 1;
  const double rough = most / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (rough <= factor * power * 1.0001) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> values = {0};
  while (values.back() < most * 0.9999) values.push_back(step * static_cast<double>(values.size()));
  return values;
}

std::string draw(const LineChart& chart) { return Plot(chart).draw(); }

}  // namespace riffle::tools
