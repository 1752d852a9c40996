// Text as printf writes it, of any length; the compiler checks the arguments.
#pragma once

#include <string>

namespace riffle {

[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

}  // namespace riffle
