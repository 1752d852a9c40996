// `riffle explain`: what limits a running or finished job, from its record.
#include <cstdio>
#include <fstream>
#include <memory>

#include "tools/command.h"
#include "tools/explain/explanation.h"
#include "tools/explain/record_lines.h"
#include "tools/terminal/patience.h"
#include "tools/terminal/terminal.h"

namespace riffle::tools {
namespace {

struct ExplainArguments {
  std::vector<std::string> paths;
  bool json = false;
  std::string html;
};

int run(const ExplainArguments& options) {
  const auto job = patiently("reading records", [&] { return read_records(options.paths); });
  if (!job) return report(job.status());
  const std::vector<Explanation> all = explain(job.value());
  if (all.empty()) {
    std::FILE* const out = options.json ? stderr : stdout;
    std::fputs("no communicator connected: all-reduces took NCCL's own way\n", out);
    for (const NoConnect& f : job->failures) std::fprintf(out, "  %s\n", f.why.c_str());
    for (const std::string& note : job->notes) std::fprintf(out, "note: %s\n", note.c_str());
    if (options.json) std::fputs(to_json(all).c_str(), stdout);
    return kFailed;
  }
  if (!options.html.empty()) {
    std::ofstream file(options.html);
    file << to_html(all);
    if (!file.flush()) return report(system_error("cannot write " + options.html));
  }
  if (options.json) {
    std::fputs(to_json(all).c_str(), stdout);
    return 0;
  }
  const Colours colours(stdout);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) std::printf("\n%s\n", std::string(72, '-').c_str());
    std::fputs(to_text(all[i], colours).c_str(), stdout);
  }
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ExplainArguments>();
  CLI::App* sub = app.add_subcommand("explain", "What limits a running or finished job, and why");
  sub->add_option("record", o->paths, "Record files or folders, of as many nodes as there are")
      ->required();
  sub->add_flag("--json", o->json, "Everything as JSON");
  sub->add_option("--html", o->html, "Also write a page with drawings to this file");
  sub->footer(
      "The first line names what limits. A job writes its record when RIFFLE_RECORD is set, best "
      "to "
      "a\n"
      "folder that all nodes share. Exit code 0: explained; 1: no communicator connected; 2: no "
      "record.\n"
      "Examples: RIFFLE_RECORD=/shared/run1/ torchrun ... train.py; riffle explain /shared/run1\n"
      "          riffle explain --html run1.html /shared/run1");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
