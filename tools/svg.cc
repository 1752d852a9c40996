#include "tools/svg.h"

#include <algorithm>
#include <cstdio>

namespace riffle::tools {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}
std::string attribute(const char* name, double value) { return attribute(name, number(value)); }

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Control characters are not allowed in XML at all.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

void Svg::shape(const std::string& element, const std::string& tip) {
  if (tip.empty()) {
    body_ += "<" + element + "/>\n";
    return;
  }
  const std::string name = element.substr(0, element.find(' '));
  body_ += "<" + element + "><title>" + escaped(tip) + "</title></" + name + ">\n";
}

void Svg::box(double x, double y, double width, double height, const std::string& fill,
              const std::string& stroke, const std::string& tip) {
  shape("rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
            attribute("height", height) + attribute("fill", fill) + attribute("stroke", stroke),
        tip);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& stroke,
               double stroke_width, const std::string& tip) {
  shape("line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
            attribute("y2", y2) + attribute("stroke", stroke) +
            attribute("stroke-width", stroke_width),
        tip);
}

void Svg::circle(double x, double y, double radius, const std::string& fill,
                 const std::string& tip) {
  shape("circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
            attribute("fill", fill),
        tip);
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const std::string& stroke,
                   double stroke_width) {
  std::string list;
  for (const auto& [x, y] : points) list += number(x) + "," + number(y) + " ";
  shape("polyline" + attribute("points", list) + attribute("fill", "none") +
            attribute("stroke", stroke) + attribute("stroke-width", stroke_width),
        "");
}

void Svg::text(double x, double y, const std::string& text, const std::string& anchor, double size,
               const std::string& fill, double angle) {
  body_ += "<text" + attribute("x", x) + attribute("y", y) + attribute("text-anchor", anchor) +
           attribute("font-size", size) + attribute("fill", fill);
  if (angle != 0) {
    body_ +=
        attribute("transform", "rotate(" + number(angle) + " " + number(x) + " " + number(y) + ")");
  }
  body_ += ">" + escaped(text) + "</text>\n";
}

std::string Svg::document() const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width_) +
         attribute("height", height_) +
         attribute("viewBox", "0 0 " + number(width_) + " " + number(height_)) +
         attribute("font-family", "sans-serif") + ">\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
}

std::string heat_colour(double value) {
  const double v = std::clamp(value, 0.0, 1.0);
  // The ends are #2c6fbb and #c0392b, the middle #f7f7f7.
  const double far = v < 0.5 ? 1 - 2 * v : 2 * v - 1;
  const int ends[2][3] = {{0x2c, 0x6f, 0xbb}, {0xc0, 0x39, 0x2b}};
  const auto& end = ends[v < 0.5 ? 0 : 1];
  char text[8];
  int mixed[3];
  for (int i = 0; i < 3; ++i) mixed[i] = static_cast<int>(0xf7 + far * (end[i] - 0xf7));
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mixed[0], mixed[1], mixed[2]);
  return text;
}

std::string draw(const HeatMap& map) {
  constexpr double kTop = 40;
  const std::size_t n = map.names.size();
  std::size_t longest = 4;
  for (const std::string& name : map.names) longest = std::max(longest, name.size());
  const double cell = n <= 16 ? 46 : n <= 64 ? 16 : 6;
  const bool has_texts = n <= 16;
  const double margin = 20 + 7.0 * static_cast<double>(std::min<std::size_t>(longest, 24));
  const double edge = margin + cell * static_cast<double>(n);
  Svg svg(edge + 20, kTop + edge + 20);
  svg.text(10, 22, map.title, "start", 14);
  for (std::size_t i = 0; i < n; ++i) {
    const double at = margin + cell * (static_cast<double>(i) + 0.5);
    if (cell > 8) {
      const double size = has_texts ? 12 : 9;
      svg.text(margin - 6, kTop + at + 4, map.names[i], "end", size);
      svg.text(at + 4, kTop + margin - 6, map.names[i], "start", size, "#222", -60);
    }
    for (std::size_t j = 0; j < n; ++j) {
      const double x = margin + cell * static_cast<double>(j);
      const double y = kTop + margin + cell * static_cast<double>(i);
      if (i == j) {
        svg.box(x, y, cell, cell, "#ddd", "#fff");
        continue;
      }
      svg.box(x, y, cell, cell, heat_colour(map.share[i][j]), "#fff",
              map.names[i] + " to " + map.names[j] + ": " + map.label[i][j]);
      if (has_texts) {
        svg.text(x + cell / 2, y + cell / 2 + 4, map.label[i][j].substr(0, 7), "middle", 10);
      }
    }
  }
  return svg.document();
}

}  // namespace riffle::tools
