#include "plugin/transport/base/errno_text.h"

#include <string.h>

namespace riffle {

std::string errno_text(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

}  // namespace riffle
