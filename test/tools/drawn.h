// A drawing as a reader sees it: its shapes and texts, parsed back from the SVG.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tools/draw/palette.h"
#include "tools/draw/text.h"

namespace riffle::tools {

struct DrawnBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool holds(double x, double y) const {
    return x >= left && x <= right && y >= top && y <= bottom;
  }
};

struct Drawn {
  struct Area {
    DrawnBox box;
    std::string paint;
  };
  struct Text {
    DrawnBox box;  // by the upper estimate of its width
    std::string words, ink;
    std::size_t areas_below = 0;  // those drawn before it
  };
  double width = 0, height = 0;
  std::vector<Area> areas;
  std::vector<Text> texts;
  std::set<std::string> paints, in_legend;         // names of the palette
  std::map<std::string, std::string> light, dark;  // class -> colour

  explicit Drawn(const std::string& svg) {
    std::istringstream in(svg);
    bool is_legend = false, is_body = false;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("<svg")) {
        width = number(line, "width");
        height = number(line, "height");
      } else if (line.starts_with("<style>")) {
        read_rules(line.substr(7), &light);
      } else if (line.starts_with("@media")) {
        read_rules(line.substr(line.find(")") + 2), &dark);
        is_body = true;
      } else if (line.starts_with("<g ")) {
        is_legend = line.find("\"legend\"") != std::string::npos;
      } else if (line.starts_with("</g>")) {
        is_legend = false;
      } else if (is_body && !line.starts_with("<defs")) {
        read_shape(line, is_legend);
      }
    }
  }

  // What lies behind the middle of a text.
  std::string behind(const Text& text) const {
    const double x = (text.box.left + text.box.right) / 2;
    const double y = (text.box.top + text.box.bottom) / 2;
    for (std::size_t i = text.areas_below; i-- > 0;) {
      if (areas[i].box.holds(x, y)) return areas[i].paint;
    }
    return "";
  }

  bool says(const std::string& words) const {
    for (const Text& text : texts) {
      if (text.words.find(words) != std::string::npos) return true;
    }
    return false;
  }

 private:
  static std::string attribute(const std::string& line, const std::string& name) {
    const std::size_t at = line.find(" " + name + "=\"");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + name.size() + 3;
    return line.substr(begin, line.find('"', begin) - begin);
  }
  static double number(const std::string& line, const std::string& name) {
    const std::string value = attribute(line, name);
    return value.empty() ? 0 : std::stod(value);
  }

  static void read_rules(const std::string& css, std::map<std::string, std::string>* rules) {
    static const std::regex one(R"(\.([a-z0-9-]+)\{(?:fill|stroke):([^}]+)\})");
    for (std::sregex_iterator at(css.begin(), css.end(), one), end; at != end; ++at) {
      (*rules)[(*at)[1]] = (*at)[2];
    }
  }

  void read_shape(const std::string& line, bool is_legend) {
    std::istringstream classes(attribute(line, "class"));
    for (std::string name; classes >> name;) {
      const std::string paint = name.substr(2);
      if (name[0] == 't' || name[0] == 'o') continue;
      if (needs_legend(*paint_named(paint))) (is_legend ? in_legend : paints).insert(paint);
      if (name[0] == 'f') add_area(line, paint);
    }
    if (line.starts_with("<text")) add_text(line);
  }

  void add_area(const std::string& line, const std::string& paint) {
    const double x = number(line, "x"), y = number(line, "y");
    DrawnBox box{x, y, x + number(line, "width"), y + number(line, "height")};
    if (line.starts_with("<circle")) {
      const double cx = number(line, "cx"), cy = number(line, "cy"), r = number(line, "r");
      box = {cx - r, cy - r, cx + r, cy + r};
    }
    areas.push_back({box, paint});
  }

  void add_text(const std::string& line) {
    const std::size_t begin = line.find('>') + 1;
    Text text;
    text.words = line.substr(begin, line.rfind("</text>") - begin);
    for (const auto& [entity, character] : std::map<std::string, std::string>{
             {"&amp;", "&"}, {"&#39;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}}) {
      text.words = std::regex_replace(text.words, std::regex(entity), character);
    }
    text.ink = attribute(line, "class");
    text.areas_below = areas.size();
    const double x = number(line, "x"), y = number(line, "y"), size = number(line, "font-size");
    const double length = text_width(text.words, size);
    const std::string anchor = attribute(line, "text-anchor");
    const double from = anchor == "start" ? 0 : anchor == "end" ? -length : -length / 2;
    const std::string turn = attribute(line, "transform");
    if (turn.empty()) {
      text.box = {x + from, y - 0.75 * size, x + from + length, y + 0.2 * size};
    } else {
      const double angle = std::stod(turn.substr(turn.find('(') + 1)) * M_PI / 180;
      const double x1 = x + from * std::cos(angle), y1 = y + from * std::sin(angle);
      const double x2 = x1 + length * std::cos(angle), y2 = y1 + length * std::sin(angle);
      text.box = {std::min(x1, x2), std::min(y1, y2), std::max(x1, x2), std::max(y1, y2)};
    }
    texts.push_back(text);
  }
};

// What holds for every drawing: no text is clipped or covers another, every text is legible on
// light and dark pages, and the legend lists every colour with a meaning.
inline void expect_sound(const std::string& svg) {
  const Drawn drawn(svg);
  ASSERT_GT(drawn.width, 0) << svg.substr(0, 200);
  ASSERT_FALSE(drawn.texts.empty());
  for (std::size_t i = 0; i < drawn.texts.size(); ++i) {
    const Drawn::Text& text = drawn.texts[i];
    EXPECT_GE(text.box.left, 0) << text.words;
    EXPECT_GE(text.box.top, 0) << text.words;
    EXPECT_LE(text.box.right, drawn.width) << text.words;
    EXPECT_LE(text.box.bottom, drawn.height) << text.words;
    const std::string below = "f-" + drawn.behind(text);
    ASSERT_NE(below, "f-no-data") << text.words;
    for (const auto* colours : {&drawn.light, &drawn.dark}) {
      ASSERT_TRUE(colours->contains(below)) << below << " behind " << text.words;
      EXPECT_GE(contrast(colours->at(text.ink), colours->at(below)), 4.5)
          << text.words << ": " << text.ink << " on " << below;
    }
    for (std::size_t j = 0; j < i; ++j) {
      const DrawnBox &a = text.box, &b = drawn.texts[j].box;
      const bool is_apart =
          a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      EXPECT_TRUE(is_apart || a.bottom - a.top > 20 || b.bottom - b.top > 20)  // turned names
          << text.words << " covers " << drawn.texts[j].words;
    }
  }
  for (const std::string& paint : drawn.paints) {
    EXPECT_TRUE(drawn.in_legend.contains(paint)) << paint << " is not in the legend";
  }
}

}  // namespace riffle::tools
