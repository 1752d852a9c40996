#include "tools/draw/text.h"

#include <sstream>

namespace riffle::tools {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // UTF-8

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

double text_width(const std::string& text, double size) {
  double width = 0;
  for (const char c : text) {
    if (continues(c)) continue;
    const bool is_narrow = std::string(" .,:;'|!()[]ijlt1").find(c) != std::string::npos;
    const bool is_wide = (c >= 'A' && c <= 'Z') || c == 'm' || c == 'w' || c == '%' || c == '@';
    width += c == '1' ? 0.62 : is_narrow ? 0.4 : is_wide ? 0.88 : 0.63;
  }
  return width * size;
}

std::string shortened(const std::string& text, double width, double size) {
  if (text_width(text, size) <= width) return text;
  const std::string dots = "…";
  std::string kept = text;
  while (!kept.empty() && text_width(kept + dots, size) > width) {
    while (continues(kept.back())) kept.pop_back();
    kept.pop_back();
  }
  return kept + dots;
}

std::vector<std::string> wrapped(const std::string& text, double width, double size) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    word = shortened(word, width, size);
    if (!lines.empty() && text_width(lines.back() + " " + word, size) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

}  // namespace riffle::tools
