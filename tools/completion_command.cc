// `riffle completion` and `riffle man`: what shells and man read, printed from the command's own
// tree.
#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/command_tree.h"

namespace riffle::tools {

void add_completion(CLI::App& app, int& exit_code) {
  CLI::App* sub = app.add_subcommand("completion", "Print the completion script for bash");
  sub->footer("Example: source <(riffle completion)");
  sub->callback([&app, &exit_code] {
    std::fputs(bash_completion(app).c_str(), stdout);
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
