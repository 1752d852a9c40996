// The colours of all drawings, each for a light and a dark page. A drawing follows the page: its
// colours are classes of a style sheet that names both.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace riffle::tools {

enum class Paint {
  // Without a meaning of their own: page, areas on it, edges, and what text is written in.
  kPage,
  kArea,
  kEdge,
  kInk,
  kFaint,
  kAlertInk,
  // Everything below stands in the legend of a drawing that uses it.
  kAlert,  // what limits, what is at fault
  kAmber,
  kBlue,
  kBrown,
  kGreen,
  kPurple,
  kSlate,
  kIndigo,
  kGrey,
  kPale,
  // Two scales of heat maps: from slow over even to fast, and from nothing to all.
  kSlow3,
  kSlow2,
  kSlow1,
  kEven,
  kFast1,
  kFast2,
  kFast3,
  kPart0,
  kPart1,
  kPart2,
  kPart3,
  kPart4,
  kPart5,
  kNoData,  // hatched
};

struct Colour {
  const char* name;  // of the class, without the prefix that says what it colours
  const char *light, *dark;
};

const Colour& colour_of(Paint paint);
std::optional<Paint> paint_named(const std::string& name);
bool needs_legend(Paint paint);

// Of the WCAG: 1 (equal) to 21 (black and white). "#rrggbb" both.
double contrast(const std::string& a, const std::string& b);
// Black or white, whichever is easier to read on the colour: 4.5 or more on any.
const char* ink_on(const std::string& colour);

// Racks take these in turn.
inline constexpr std::array kRackPaints = {Paint::kBlue,   Paint::kBrown, Paint::kGreen,
                                           Paint::kPurple, Paint::kSlate, Paint::kIndigo};
inline Paint rack_paint(std::size_t rack) { return kRackPaints[rack % kRackPaints.size()]; }

}  // namespace riffle::tools
