// The view as text that fits 80 columns.
#pragma once

#include <string>

#include "tools/terminal/terminal.h"
#include "tools/topo/view.h"

namespace riffle::tools::topo {

std::string to_text(const View& view, const Colours& colours);

}  // namespace riffle::tools::topo
