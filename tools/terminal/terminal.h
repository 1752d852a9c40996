// Colour: only on a terminal, never where output goes to a file or a pipe, nor where
// NO_COLOR is set or TERM is dumb.
#pragma once

#include <cstdio>
#include <string>

namespace riffle::tools {

class Colours {
 public:
  explicit Colours(std::FILE* stream);

  std::string bold(const std::string& text) const { return in("1", text); }
  std::string dim(const std::string& text) const { return in("2", text); }
  std::string red(const std::string& text) const { return in("31", text); }
  std::string green(const std::string& text) const { return in("32", text); }
  std::string yellow(const std::string& text) const { return in("33", text); }

 private:
  std::string in(const char* code, const std::string& text) const {
    return on_ ? "\033[" + std::string(code) + "m" + text + "\033[0m" : text;
  }
  bool on_;
};

}  // namespace riffle::tools
