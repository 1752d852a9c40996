#include "tools/command_line/command_tree.h"
#include "tools/command_line/completion.h"
#include "tools/env/quoting.h"

namespace riffle::tools {
namespace {

// An explanation stands in brackets and takes one line.
std::string explanation(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return "[" + out + "]";
}

// What _arguments takes: --format[What reads them]:value:(sh csh fish)
std::string argument_words(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : options_of(command)) {
    const std::string choices = choices_of(*option);
    const std::string value =
        takes_value(*option) ? ":value:" + (choices.empty() ? "_files" : "(" + choices + ")") : "";
    for (const std::string& name : names_of(*option)) {
      words += " " + sh_word(name + explanation(option->get_description()) + value);
    }
  }
  return words;
}

}  // namespace

std::string zsh_completion(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    names += "    " + sh_word(name + ":" + command->get_description()) + "\n";
    cases += "    " + name + ") _arguments" + argument_words(*command) + " '*:file:_files' ;;\n";
  }
  return "#compdef riffle\n"
         "# Completion of the riffle command for zsh; made by `riffle completion zsh`.\n"
         "_riffle() {\n"
         "  local context state state_descr line\n"
         "  typeset -A opt_args\n"
         "  local -a commands=(\n" +
         names +
         "  )\n"
         "  _arguments -C --help --version '1:command:->command' '*::argument:->argument'\n"
         "  case $state in\n"
         "    command) _describe command commands; return ;;\n"
         "    argument) ;;\n"
         "    *) return ;;\n"
         "  esac\n"
         "  case $words[1] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_riffle \"$@\"\n";
}

}  // namespace riffle::tools
