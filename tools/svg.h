// Drawings as SVG: a handful of shapes with one plain look, texts escaped. Coordinates in pixels,
// y downwards.
#pragma once

#include <string>
#include <vector>

namespace riffle::tools {

// "&", "<", ">" and quotes made harmless, for SVG and HTML.
std::string escaped(const std::string& text);

class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  // Colours are CSS: "#c0392b", "none". An empty tip shows nothing under the pointer.
  void box(double x, double y, double width, double height, const std::string& fill,
           const std::string& stroke = "none", const std::string& tip = "");
  void line(double x1, double y1, double x2, double y2, const std::string& stroke,
            double stroke_width = 1, const std::string& tip = "");
  void circle(double x, double y, double radius, const std::string& fill,
              const std::string& tip = "");
  void polyline(const std::vector<std::pair<double, double>>& points, const std::string& stroke,
                double stroke_width = 1.5);
  // `anchor` is start, middle or end; `angle` turns around the point, clockwise in degrees.
  void text(double x, double y, const std::string& text, const std::string& anchor = "start",
            double size = 12, const std::string& fill = "#222", double angle = 0);

  // A complete document; also fit to stand inside an HTML page.
  std::string document() const;

 private:
  void shape(const std::string& element, const std::string& tip);

  double width_, height_;
  std::string body_;
};

// From blue (0) over white to red (1), for heat maps that compare with a middle.
std::string heat_colour(double value);

// A square matrix of values in rows (from) and columns (to) with their names. `share` in 0..1 gives
// the colour of each cell, `label` its text and tip; cells on the diagonal stay empty.
struct HeatMap {
  std::string title;
  std::vector<std::string> names;
  std::vector<std::vector<double>> share;
  std::vector<std::vector<std::string>> label;
};
std::string draw(const HeatMap& map);

}  // namespace riffle::tools
