#include "tools/terminal/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace riffle::tools {

Colours::Colours(std::FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  on_ = isatty(fileno(stream)) != 0 && (no_colour == nullptr || *no_colour == '\0') &&
        term != nullptr && std::strcmp(term, "dumb") != 0;
}

}  // namespace riffle::tools
