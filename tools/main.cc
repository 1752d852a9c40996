#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "plugin/version.h"
#include "tools/command.h"
#include "tools/command_line/help_text.h"
#include "tools/command_line/mistakes.h"

namespace riffle::tools {
namespace {

void add_version(CLI::App& app) {
  app.add_subcommand("version", "The version, as --version")
      ->footer("Example: riffle version")
      ->callback([] { std::printf("riffle %s\n", kVersion); });
}

// What was printed may not have arrived: a full disk, /dev/full.
int end_output(int exit_code) {
  const bool has_failed = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !has_failed) return exit_code;
  std::fprintf(stderr, "riffle: cannot write the output: %s\n", std::strerror(errno));
  return kFailed;
}

}  // namespace

int report(const Status& status) {
  if (status) return 0;
  std::fprintf(stderr, "riffle: %s\n", status.message().c_str());
  return status.code() == Code::kInvalidArgument ? kUsage : kFailed;
}

}  // namespace riffle::tools

int main(int argc, char** argv) {
  using namespace riffle::tools;
  CLI::App app{"Riffle: exact all-reduce in groups that avoid the bottleneck, as an NCCL plugin"};
  app.set_version_flag("--version", std::string("riffle ") + riffle::kVersion);
  app.formatter(std::make_shared<HelpText>());
  app.require_subcommand(1);
  int exit_code = 0;
#ifdef RIFFLE_BENCH
  add_bench(app, exit_code);
#endif
  add_plan(app, exit_code);
  add_explain(app, exit_code);
  add_top(app, exit_code);
  add_metrics(app, exit_code);
  add_trace(app, exit_code);
  add_order(app, exit_code);
  add_probe(app, exit_code);
  add_sim(app, exit_code);
  add_env(app, exit_code);
  add_run(app, exit_code);
  add_doctor(app, exit_code);
  add_config(app, exit_code);
  add_cluster(app, exit_code);
  add_topo(app, exit_code);
  add_completion(app, exit_code);
  add_man(app, exit_code);
  add_draw(app, exit_code);
  add_version(app);
  app.failure_message(mistake_text);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? end_output(0) : kUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "riffle: %s\n", e.what());
    return kFailed;
  }
  return end_output(exit_code);
}
