#include <cstdio>
#include <exception>

#include "plugin/version.h"
#include "tools/command.h"

namespace riffle::tools {

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
  app.require_subcommand(1);
  int exit_code = 0;
#ifdef RIFFLE_BENCH
  add_bench(app, exit_code);
#endif
  add_plan(app, exit_code);
  add_explain(app, exit_code);
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
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "riffle: %s\n", e.what());
    return kFailed;
  }
  return exit_code;
}
