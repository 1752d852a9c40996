// Completion scripts of shells, made from the command line: its commands, their options, and the
// values of those that have a list of them. Other values are file names.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace riffle::tools {

std::string bash_completion(const CLI::App& app);  // to be sourced
std::string zsh_completion(const CLI::App& app);   // a file _riffle in a folder of $fpath
std::string fish_completion(const CLI::App& app);  // to be sourced

}  // namespace riffle::tools
