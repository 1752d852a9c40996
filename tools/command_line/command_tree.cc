#include "tools/command_line/command_tree.h"

#include <algorithm>

#include "tools/command_line/help_text.h"

namespace riffle::tools {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  // Those without a group are for Riffle's own programs.
  std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  std::sort(commands.begin(), commands.end(),
            [](const CLI::App* a, const CLI::App* b) { return a->get_name() < b->get_name(); });
  return commands;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* o) { return !o->get_group().empty(); });
}

std::string choices_of(const CLI::Option& option) {
  std::string words = accepted_by(option);
  if (words.find('|') == std::string::npos) return "";
  std::replace(words.begin(), words.end(), '|', ' ');
  return words;
}

}  // namespace riffle::tools
