#include "tools/command_line/command_tree.h"
#include "tools/command_line/completion.h"

namespace riffle::tools {

std::string bash_completion(const CLI::App& app) {
  std::string names, words, values;
  for (const CLI::App* command : commands_of(app)) {
    const std::string name = command->get_name();
    names += (names.empty() ? "" : " ") + name;
    std::string options;
    for (const CLI::Option* option : options_of(*command)) {
      for (const std::string& word : names_of(*option)) {
        options += (options.empty() ? "" : " ") + word;
        if (!takes_value(*option)) continue;
        values += "    \"" + name + " " + word + "\") words=\"" + choices_of(*option) +
                  "\"; is_value=1 ;;\n";
      }
    }
    words += "    " + name + ") words=\"" + options + "\" ;;\n";
  }
  return "# Completion of the riffle command for bash; made by `riffle completion`.\n"
         "_riffle() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command= words= is_value= word\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    if [[ $word != -* ]]; then command=$word; break; fi\n"
         "  done\n"
         "  case \"$command\" in\n"
         "    '') words=\"" +
         names + " --help --version\" ;;\n" + words +
         "  esac\n"
         "  case \"$command $prev\" in\n" +
         values +
         "  esac\n"
         "  # Values without a list, and words that are no options, are file names.\n"
         "  if [[ -n $is_value || $cur == -* || -z $command ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _riffle riffle\n";
}

}  // namespace riffle::tools
