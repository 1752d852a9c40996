// What a command line got wrong, and what may have been meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace riffle::tools {

// For CLI::App::failure_message, of the whole command: one line that says what is wrong, and one
// that says where to read more.
std::string mistake_text(const CLI::App* app, const CLI::Error& error);

}  // namespace riffle::tools
