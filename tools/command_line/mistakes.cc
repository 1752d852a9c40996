#include "tools/command_line/mistakes.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "topology/base/nearest.h"

namespace riffle::tools {
namespace {

using Words = std::vector<std::string>;

std::string did_you_mean(const std::string& word, const Words& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  return views.empty() ? "" : "; did you mean " + std::string(nearest(word, views)) + "?";
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  Words names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  return "there is no command " + word + did_you_mean(word, names);
}

// Of the options that the command does not have, the first: without its value.
std::string unknown_option(const CLI::App& command) {
  for (const std::string& word : command.remaining()) {
    if (word == "--") break;
    if (word.starts_with('-')) return word.substr(0, word.find('='));
  }
  return "";
}

std::string no_such_option(const CLI::App& command, const std::string& option) {
  Words names;
  for (const CLI::Option* known : command.get_options()) {
    if (known->get_group().empty()) continue;  // hidden
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  }
  return command.get_name() + " has no option " + option +
         (option.starts_with("--") ? did_you_mean(option, names) : "");
}

// "--format: jsn not in {sh,csh,json}", as CLI11 has it.
std::string with_the_nearest_choice(const std::string& text) {
  constexpr std::string_view kOpen = " not in {";
  const std::size_t open = text.find(kOpen), close = text.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return text;
  const std::size_t colon = text.rfind(": ", open);
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 2;
  std::istringstream list(text.substr(open + kOpen.size(), close - open - kOpen.size()));
  Words choices;
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return text + did_you_mean(text.substr(begin, open - begin), choices);
}

std::string what_is_wrong(const CLI::App& app, const CLI::Error& error) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) {
    const Words extra = app.remaining();
    return extra.empty() ? error.what() : unknown_command(app, extra.front());
  }
  // An option that is misspelt may be one that is required: it is the mistake, then.
  const std::string option = unknown_option(*chosen.front());
  if (!option.empty()) return no_such_option(*chosen.front(), option);
  return with_the_nearest_choice(error.what());
}

}  // namespace

std::string mistake_text(const CLI::App* app, const CLI::Error& error) {
  const auto chosen = app->get_subcommands();
  return "riffle: " + what_is_wrong(*app, error) +
         "\nriffle: " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") +
         "--help says more\n";
}

}  // namespace riffle::tools
