#include "lab/nccl_host/tables/plugin_versions.h"

#include <strings.h>
#include <unistd.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace riffle::host {
namespace {

// NCCL_DEBUG=WARN|INFO|... as in NCCL; without it only warnings are shown.
int log_level() {
  const char* text = std::getenv("NCCL_DEBUG");
  if (text == nullptr) return 2;
  const char* names[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
  for (int i = 0; i < 6; ++i) {
    if (strcasecmp(text, names[i]) == 0) return i;
  }
  return 2;
}

}  // namespace

void log_from_plugin(int level, unsigned long, const char* file, int line, const char* format,
                     ...) {
  static const int shown = log_level();
  if (level > shown) return;
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "[%d] %s %s:%d %s\n", getpid(), level <= 2 ? "WARN" : "INFO", file, line,
               text);
}

}  // namespace riffle::host
