#include "tools/draw/svg.h"

#include <algorithm>
#include <cstdio>

#include "tools/draw/text.h"

namespace riffle::tools {
namespace {

constexpr double kMargin = 12;  // below the lowest shape

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}
std::string attribute(const char* name, double value) { return attribute(name, number(value)); }

std::string attributes(const LineStyle& style) {
  return attribute("stroke-width", style.width) +
         (style.is_dashed ? attribute("stroke-dasharray", "5 4") : "");
}

// One rule of the style sheet.
std::string rule(char what, Paint paint, bool is_dark) {
  const Colour& colour = colour_of(paint);
  const std::string value = is_dark ? colour.dark : colour.light;
  const std::string head = "." + std::string(1, what) + "-" + colour.name;
  if (what == 's') return head + "{stroke:" + value + "}";
  if (what == 'o') return head + "{fill:" + ink_on(value) + "}";
  if (what == 'f' && paint == Paint::kNoData) return head + "{fill:url(#no-data)}";
  return head + "{fill:" + value + "}";
}

const char* name_of(TextStyle::Anchor anchor) {
  if (anchor == TextStyle::Anchor::kStart) return "start";
  return anchor == TextStyle::Anchor::kMiddle ? "middle" : "end";
}

}  // namespace

void Svg::widen(double width) { width_ = std::max(width_, width); }

void Svg::reach(double y) { height_ = std::max(height_, y + kMargin); }

std::string Svg::fill_class(Paint paint) {
  used_.insert({'f', paint});
  if (paint == Paint::kNoData) used_.insert({{'f', Paint::kPage}, {'s', Paint::kEdge}});
  return std::string("f-") + colour_of(paint).name;
}

std::string Svg::stroke_class(Paint paint) {
  used_.insert({'s', paint});
  return std::string("s-") + colour_of(paint).name;
}

void Svg::shape(const std::string& element, const std::string& tip) {
  if (tip.empty()) {
    body_ += "<" + element + "/>\n";
    return;
  }
  const std::string name = element.substr(0, element.find(' '));
  body_ += "<" + element + "><title>" + escaped(tip) + "</title></" + name + ">\n";
}

void Svg::box(double x, double y, double width, double height, Paint fill, const std::string& tip) {
  reach(y + height);
  shape("rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
            attribute("height", height) + attribute("class", fill_class(fill)),
        tip);
}

void Svg::framed(double x, double y, double width, double height, Paint fill, Paint stroke,
                 const std::string& tip) {
  reach(y + height);
  shape("rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
            attribute("height", height) + attribute("rx", 4) +
            attribute("class", fill_class(fill) + " " + stroke_class(stroke)),
        tip);
}

void Svg::circle(double x, double y, double radius, Paint fill, const std::string& tip) {
  reach(y + radius);
  shape("circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
            attribute("class", fill_class(fill)),
        tip);
}

void Svg::ring(double x, double y, double radius, Paint stroke, double width) {
  reach(y + radius + width);
  shape("circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
            attribute("fill", "none") + attribute("stroke-width", width) +
            attribute("class", stroke_class(stroke)),
        "");
}

void Svg::line(double x1, double y1, double x2, double y2, Paint stroke, LineStyle style,
               const std::string& tip) {
  reach(std::max(y1, y2));
  shape("line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
            attribute("y2", y2) + attributes(style) + attribute("class", stroke_class(stroke)),
        tip);
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, Paint stroke,
                   LineStyle style) {
  std::string list;
  for (const auto& [x, y] : points) {
    reach(y);
    list += number(x) + "," + number(y) + " ";
  }
  shape("polyline" + attribute("points", list) + attribute("fill", "none") + attributes(style) +
            attribute("class", stroke_class(stroke)),
        "");
}

void Svg::text(double x, double y, const std::string& text, const TextStyle& style) {
  reach(y + style.size / 3);
  const bool is_plain = !needs_legend(style.on);
  const Paint paint = is_plain ? style.ink : style.on;
  used_.insert({is_plain ? 't' : 'o', paint});
  body_ += "<text" + attribute("x", x) + attribute("y", y) +
           attribute("text-anchor", name_of(style.anchor)) + attribute("font-size", style.size) +
           (style.is_bold ? attribute("font-weight", "bold") : "") +
           attribute("class", (is_plain ? "t-" : "o-") + std::string(colour_of(paint).name));
  if (style.angle != 0) {
    body_ += attribute("transform",
                       "rotate(" + number(style.angle) + " " + number(x) + " " + number(y) + ")");
  }
  body_ += ">" + escaped(text) + "</text>\n";
}

std::string Svg::style_sheet() const {
  std::string light, dark;
  for (const auto& [what, paint] : used_) {
    light += rule(what, paint, false);
    dark += rule(what, paint, true);
  }
  return "<style>" + light + "\n@media (prefers-color-scheme:dark){" + dark + "}</style>\n";
}

std::string Svg::document() const {
  Svg page(width_, "");  // what lies behind everything
  page.used_ = used_;
  page.box(0, 0, width_, height_, Paint::kPage);
  std::string definitions;
  if (used_.contains({'f', Paint::kNoData})) {
    definitions =
        "<defs><pattern id=\"no-data\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
        "<path d=\"M0 0H6V6H0Z\" class=\"f-page\"/>"
        "<path d=\"M-1 1 1 -1M0 6 6 0M5 7 7 5\" class=\"s-edge\"/></pattern></defs>\n";
  }
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width_) +
         attribute("height", height_) +
         attribute("viewBox", "0 0 " + number(width_) + " " + number(height_)) +
         attribute("role", "img") + attribute("font-family", "system-ui, sans-serif") +
         attribute("style", "max-width:100%;height:auto") + ">\n<title>" + escaped(title_) +
         "</title>\n" + page.style_sheet() + definitions + page.body_ + body_ + "</svg>\n";
}

}  // namespace riffle::tools
