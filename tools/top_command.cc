// `riffle top`: what a running job does now, from the record that it writes.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/live/live_view.h"
#include "tools/live/record_follower.h"
#include "tools/live/screen.h"
#include "tools/live/top_text.h"
#include "tools/terminal/terminal.h"

namespace riffle::tools {
namespace {

struct TopArguments {
  std::vector<std::string> paths;
  bool once = false;
  double every_s = 2, window_s = 10;
};

std::string nothing_yet(const TopArguments& options) {
  std::string where = options.paths.front();
  if (options.paths.size() > 1) where += ", ...";
  return where +
         ": no record of Riffle yet; a job that runs with RIFFLE_RECORD=FOLDER/ writes one\n";
}

std::string page_of(const RecordFollower& record, const TopArguments& options) {
  if (!record.has_lines()) return nothing_yet(options);
  const JobRecord job = record.job();
  const std::string text =
      to_text(view_live(job, options.window_s), job, unix_now_s(), Colours(stdout));
  return text.empty() ? "no communicator has connected yet\n" : text;
}

int run(const TopArguments& options) {
  RecordFollower record(options.paths, {.window_s = options.window_s});
  if (Status s = record.look(); !s) return report(s);
  if (options.once || isatty(STDOUT_FILENO) == 0) {
    std::fputs(page_of(record, options).c_str(), stdout);
    return 0;
  }
  Screen screen;
  Status status = Status::ok();
  do {
    // A folder may be gone for a while, as when a job begins anew.
    screen.show(status ? page_of(record, options) : status.message() + "\n");
    if (!screen.wait(static_cast<int>(1000 * options.every_s))) return 0;
    status = record.look();
  } while (true);
}

}  // namespace

void add_top(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TopArguments>();
  CLI::App* sub = app.add_subcommand("top", "What a running job does now: nodes, waits, plan");
  sub->add_option("record", o->paths, "Record files or folders, of as many nodes as there are")
      ->required();
  sub->add_flag("--once", o->once, "Print it once, as plain text; so it is without a terminal");
  sub->add_option("--every", o->every_s, "Seconds from page to page")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  sub->add_option("--window", o->window_s, "Seconds that figures are of")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  sub->footer(
      "Of every communicator: what limits, the plan in force with its last change, and per node\n"
      "what it sends and receives while collectives run, its rates, and how much of the other\n"
      "nodes' waiting is for it. The key q ends it. Exit code 0: shown, 2: no such file or "
      "folder.\n"
      "Examples: RIFFLE_RECORD=/shared/run1/ torchrun ... train.py; riffle top /shared/run1\n"
      "          riffle top --once /shared/run1");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
