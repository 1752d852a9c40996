#include <algorithm>

#include "tools/command_line/command_tree.h"
#include "tools/command_line/completion.h"
#include "tools/env/quoting.h"

namespace riffle::tools {
namespace {

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string option_line(const std::string& command, const CLI::Option& option) {
  std::string line = "complete -c riffle -n '__fish_seen_subcommand_from " + command + "'";
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  const std::string choices = choices_of(option);
  if (!choices.empty()) {
    line += " -x -a " + fish_word(choices);
  } else if (takes_value(option)) {
    line += " -r";
  }
  return line + " -d " + fish_word(one_line(option.get_description())) + "\n";
}

}  // namespace

std::string fish_completion(const CLI::App& app) {
  std::string lines;
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    lines += "complete -c riffle -n __fish_use_subcommand -f -a " + name + " -d " +
             fish_word(one_line(command->get_description())) + "\n";
    for (const CLI::Option* option : options_of(*command)) {
      if (option->nonpositional()) lines += option_line(name, *option);
    }
  }
  return "# Completion of the riffle command for fish; made by `riffle completion fish`.\n" + lines;
}

}  // namespace riffle::tools
