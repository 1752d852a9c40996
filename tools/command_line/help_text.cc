#include "tools/command_line/help_text.h"

#include <algorithm>

namespace riffle::tools {
namespace {

constexpr std::size_t kManyDigits = 16;  // a bound so long only says that there is room

// What lies between `open` and `close`; empty: nothing does.
std::string between(const std::string& text, const std::string& open, char close) {
  const std::size_t begin = text.find(open);
  if (begin == std::string::npos) return "";
  const std::size_t end = text.find(close, begin + open.size());
  if (end == std::string::npos) return "";
  return text.substr(begin + open.size(), end - begin - open.size());
}

}  // namespace

std::string accepted_by(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (std::string words = between(type, "{", '}'); !words.empty()) {
    std::replace(words.begin(), words.end(), ',', '|');
    return words;
  }
  const std::string range = between(type, " in [", ']');
  const std::size_t dash = range.find(" - ");
  if (dash == std::string::npos) return type == "UINT" || type == "INT" ? "N" : type;
  const std::string most = range.substr(dash + 3);
  return range.substr(0, dash) + ".." + (most.size() < kManyDigits ? most : "");
}

std::string HelpText::make_option_opts(const CLI::Option* option) const {
  std::string text;
  if (option->get_type_size() != 0) {
    text += " " + accepted_by(*option);
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (option->get_required()) text += " (required)";
  }
  for (const CLI::Option* other : option->get_needs()) text += " (with " + other->get_name() + ")";
  return text;
}

}  // namespace riffle::tools
