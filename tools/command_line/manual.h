// Manual pages, in roff: riffle(1) from the command line, riffle.conf(5) from the table of knobs.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace riffle::tools {

std::string man_page(const CLI::App& app);
std::string settings_page();

}  // namespace riffle::tools
