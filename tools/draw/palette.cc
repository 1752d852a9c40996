#include "tools/draw/palette.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace riffle::tools {
namespace {

constexpr Colour kColours[] = {
    {"page", "#ffffff", "#16191d"},   {"area", "#f1f3f5", "#23282e"},
    {"edge", "#8a939c", "#7c868f"},   {"ink", "#1b1f24", "#e4e7ea"},
    {"faint", "#59626c", "#a9b1b9"},  {"alert-ink", "#b84300", "#ff9a5c"},
    {"alert", "#c44a00", "#ff8a4a"},  {"amber", "#c98a00", "#e6b450"},
    {"blue", "#0072b2", "#4aa8e0"},   {"brown", "#9a5a00", "#d99a3d"},
    {"green", "#00795a", "#3dbb95"},  {"purple", "#8f4d78", "#cc86b3"},
    {"slate", "#5b6470", "#9aa5b1"},  {"indigo", "#3f51b5", "#8c9eff"},
    {"grey", "#a3abb3", "#69727b"},   {"pale", "#d5dbe1", "#3a424b"},
    {"slow-3", "#b2361b", "#ff7a4d"}, {"slow-2", "#e08a62", "#b3502f"},
    {"slow-1", "#f5cdb6", "#6b3a2a"}, {"even", "#eceef0", "#363c43"},
    {"fast-1", "#c0d9ee", "#29445c"}, {"fast-2", "#7fb2dc", "#2f6c9e"},
    {"fast-3", "#2b6da8", "#5ab0ee"}, {"part-0", "#fdf3ea", "#2a2623"},
    {"part-1", "#fbd9bd", "#4d3423"}, {"part-2", "#f6b98a", "#734320"},
    {"part-3", "#ed9353", "#9c581b"}, {"part-4", "#d96c22", "#cc6f1a"},
    {"part-5", "#a84600", "#ff9142"}, {"no-data", "#ffffff", "#16191d"},
};
static_assert(std::size(kColours) == static_cast<std::size_t>(Paint::kNoData) + 1);

double luminance(const std::string& colour) {
  const long rgb = std::strtol(colour.c_str() + 1, nullptr, 16);
  const auto linear = [rgb](int shift) {
    const double part = static_cast<double>((rgb >> shift) & 255) / 255;
    return part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(16) + 0.7152 * linear(8) + 0.0722 * linear(0);
}

}  // namespace

const Colour& colour_of(Paint paint) { return kColours[static_cast<std::size_t>(paint)]; }

std::optional<Paint> paint_named(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kColours); ++i) {
    if (name == kColours[i].name) return static_cast<Paint>(i);
  }
  return std::nullopt;
}

bool needs_legend(Paint paint) { return paint > Paint::kAlertInk; }

double contrast(const std::string& a, const std::string& b) {
  const double one = luminance(a), other = luminance(b);
  const double less = std::min(one, other), more = std::max(one, other);
  return (more + 0.05) / (less + 0.05);
}

const char* ink_on(const std::string& colour) {
  return contrast(colour, "#000000") > contrast(colour, "#ffffff") ? "#000000" : "#ffffff";
}

}  // namespace riffle::tools
