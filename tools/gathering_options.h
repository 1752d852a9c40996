// The options of commands that run on several hosts at once.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/probe/gathering.h"

namespace riffle::tools {

// `gathering` must live as long as the command line.
void add_gathering_options(CLI::App* command, Gathering* gathering);

}  // namespace riffle::tools
