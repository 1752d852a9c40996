// Drawings as SVG: a handful of shapes in the colours of the palette, texts escaped. Coordinates in
// pixels, y downwards.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/draw/palette.h"

namespace riffle::tools {

struct TextStyle {
  enum class Anchor { kStart, kMiddle, kEnd };
  Anchor anchor = Anchor::kStart;
  double size = 12;
  Paint ink = Paint::kInk;  // on page and areas; elsewhere the one that is legible
  Paint on = Paint::kPage;  // what lies behind
  bool is_bold = false;
  double angle = 0;  // around the point, clockwise in degrees
};

struct LineStyle {
  double width = 1;
  bool is_dashed = false;
};

class Svg {
 public:
  // `title` says what is to be seen to those who hear it.
  Svg(double width, std::string title) : width_(width), title_(std::move(title)) {}

  double width() const { return width_; }
  void widen(double width);  // to at least this

  // An empty tip shows nothing under the pointer.
  void box(double x, double y, double width, double height, Paint fill,
           const std::string& tip = "");
  void framed(double x, double y, double width, double height, Paint fill, Paint stroke,
              const std::string& tip = "");
  void circle(double x, double y, double radius, Paint fill, const std::string& tip = "");
  void ring(double x, double y, double radius, Paint stroke, double width);  // not filled
  void line(double x1, double y1, double x2, double y2, Paint stroke, LineStyle style = {},
            const std::string& tip = "");
  void polyline(const std::vector<std::pair<double, double>>& points, Paint stroke,
                LineStyle style = {});
  void text(double x, double y, const std::string& text, const TextStyle& style = {});
  // What stands between them is a group of that class.
  void begin_group(const std::string& name) { body_ += "<g class=\"" + name + "\">\n"; }
  void end_group() { body_ += "</g>\n"; }

  // A complete document, as high as what was drawn and a margin; also fit to stand inside an HTML
  // page.
  std::string document() const;

 private:
  std::string fill_class(Paint paint);
  std::string stroke_class(Paint paint);
  void shape(const std::string& element, const std::string& tip);
  void reach(double y);
  std::string style_sheet() const;

  double width_, height_ = 0;
  std::string title_, body_;
  std::set<std::pair<char, Paint>> used_;  // f fill, s stroke, o text on it, t text in it
};

}  // namespace riffle::tools
