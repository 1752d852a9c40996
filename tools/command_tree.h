// The command line as text, made from CLI11's tree, so that it cannot fall behind: manual page and
// shell completion.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace riffle::tools {

std::string man_page(const CLI::App& app);         // riffle(1), roff
std::string settings_page();                       // riffle.conf(5), from the knob table, roff
std::string bash_completion(const CLI::App& app);  // to be sourced

}  // namespace riffle::tools
