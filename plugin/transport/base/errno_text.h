// What errno means, for messages. Any thread.
#pragma once

#include <string>

namespace riffle {

std::string errno_text(int error);

}  // namespace riffle
