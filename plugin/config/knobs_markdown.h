// The knob table as the page docs/knobs.md.
#pragma once

#include <string>

namespace riffle {

// Depends on knobs.def only, not on the settings in force.
std::string knobs_markdown();

}  // namespace riffle
