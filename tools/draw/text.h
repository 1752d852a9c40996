// How much room a text takes, before any font is known.
#pragma once

#include <string>
#include <vector>

namespace riffle::tools {

// "&", "<", ">" and quotes made harmless, for SVG and HTML.
std::string escaped(const std::string& text);

// An upper estimate for usual sans-serif fonts, in pixels.
double text_width(const std::string& text, double size);

// Cut to fit, with an ellipsis at its end.
std::string shortened(const std::string& text, double width, double size);

// Lines broken at blanks; a word that is wider than `width` is shortened.
std::vector<std::string> wrapped(const std::string& text, double width, double size);

}  // namespace riffle::tools
