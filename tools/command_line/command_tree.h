// The command line as CLI11 has it, for texts that are made from it so that they cannot fall
// behind: manual pages (manual.h) and completion (completion/completion.h).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace riffle::tools {

// By name, without those for Riffle's own programs.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
// Without those for the command's own processes.
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// Long names first, then short ones: "--json", "-j"; none of a positional.
std::vector<std::string> names_of(const CLI::Option& option);
bool takes_value(const CLI::Option& option);
// The words of a type like "TEXT:{a,b}", by spaces; empty for free values.
std::string choices_of(const CLI::Option& option);

}  // namespace riffle::tools
