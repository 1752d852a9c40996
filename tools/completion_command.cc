// `riffle completion` and `riffle man`: what shells and man read, printed from the command's own
// tree.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/command_line/completion.h"
#include "tools/command_line/manual.h"

namespace riffle::tools {

namespace {

struct Shell {
  const char* name;
  std::string (*script)(const CLI::App&);
};

constexpr Shell kShells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  auto chosen = std::make_shared<std::string>(kShells[0].name);
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  CLI::App* sub = app.add_subcommand("completion", "Print the completion script of a shell");
  sub->add_option("shell", *chosen, "Which shell reads it")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  sub->footer(
      "Examples: source <(riffle completion)                            bash\n"
      "          riffle completion zsh > FOLDER/_riffle                a folder of $fpath\n"
      "          riffle completion fish | source                       fish");
  sub->callback([&app, &exit_code, chosen] {
    for (const Shell& shell : kShells) {
      if (*chosen == shell.name) std::fputs(shell.script(app).c_str(), stdout);
    }
    exit_code = 0;
  });
}

void add_man(CLI::App& app, int& exit_code) {
  auto page = std::make_shared<std::string>("riffle.1");
  CLI::App* sub = app.add_subcommand("man", "Print a manual page");
  sub->add_option("page", *page, "riffle.1 or riffle.conf.5")
      ->check(CLI::IsMember({"riffle.1", "riffle.conf.5"}))
      ->capture_default_str();
  sub->footer("Example: riffle man riffle.conf.5 | man -l -");
  sub->callback([&app, &exit_code, page] {
    std::fputs((*page == "riffle.1" ? man_page(app) : settings_page()).c_str(), stdout);
    exit_code = 0;
  });
}

}  // namespace riffle::tools
