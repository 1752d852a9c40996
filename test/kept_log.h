// The lines that a test has logged, with a logger of its own in place of NCCL's:
//   kept_lines.clear(); set_logger(keep_line); ... set_logger(nullptr);
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

#include "plugin/config/log.h"

namespace riffle {

inline std::vector<std::string> kept_lines;  // for tests that log on one thread

inline void keep_line(int, unsigned long, const char*, int, const char*, ...)
    __attribute__((format(printf, 5, 6)));
inline void keep_line(int, unsigned long, const char*, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[1024];
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  kept_lines.emplace_back(text);
}

}  // namespace riffle
