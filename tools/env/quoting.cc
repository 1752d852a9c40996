#include "tools/env/quoting.h"

#include <string_view>

namespace riffle::tools {
namespace {

bool needs_no_quotes(const std::string& text) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  return !text.empty() && text.find_first_not_of(kPlain) == std::string::npos;
}

// A line break among the special characters is written as \n, not as a backslash before a break,
// which would continue the line.
std::string with_backslashes(const std::string& text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    const bool is_special = special.find(c) != std::string_view::npos;
    if (is_special) out += '\\';
    out += is_special && c == '\n' ? 'n' : is_special && c == '\r' ? 'r' : c;
  }
  return out;
}

}  // namespace

std::string sh_word(const std::string& text) {
  if (needs_no_quotes(text)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// No quotes: within them csh replaces `!` and `$` all the same.
std::string csh_word(const std::string& text) {
  return text.empty() ? "\"\"" : with_backslashes(text, " \t!\"#$&'()*;<=>?[\\]^`{|}~");
}

std::string fish_word(const std::string& text) {
  return needs_no_quotes(text) ? text : "'" + with_backslashes(text, "'\\") + "'";
}

// Braces, too: the word may stand in the body of a procedure, where braces are counted.
std::string tcl_word(const std::string& text) {
  return needs_no_quotes(text) ? text : "\"" + with_backslashes(text, "\"\\$[]{}\n\r") + "\"";
}

std::string lua_string(const std::string& text) {
  return "\"" + with_backslashes(text, "\"\\\n\r") + "\"";
}

}  // namespace riffle::tools
