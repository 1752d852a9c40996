// Predicted and measured times in log lines: "1.32 s".
#pragma once

#include <string>

#include "topology/base/printed.h"

namespace riffle {

inline std::string in_seconds(double us) { return printed("%.3g s", us / 1e6); }

}  // namespace riffle
