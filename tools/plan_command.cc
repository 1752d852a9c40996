// `riffle plan`: the groups the planner chooses for a fabric, and why.
#include <cstdio>
#include <fstream>
#include <memory>

#include "plugin/config/config.h"
#include "tools/command.h"
#include "tools/fabric_source.h"
#include "tools/plan/plan_view.h"
#include "tools/terminal.h"
#include "topology/plan/planner.h"

namespace riffle::tools {
namespace {

struct Options {
  FabricSource source;
  std::uint64_t bytes = 16 << 20;
  int lanes = 0;
  std::string only, svg;
  bool json = false;
};

int run(const Options& options) {
  const auto fabric = read_fabric(options.source, "plan");
  if (!fabric) return report(fabric.status());
  PlanOptions plan_options;
  plan_options.max_lanes = options.lanes ? options.lanes : static_cast<int>(config().lanes);
  plan_options.only = options.only.empty() ? config().plan : options.only;
  const auto choice = plan(fabric.value(), options.bytes, plan_options);
  if (!choice) return report(choice.status());
  const PlanView view(fabric.value(), choice.value(), options.bytes);
  if (!options.svg.empty()) {
    std::ofstream file(options.svg);
    file << to_svg(view);
    if (!file.flush()) return report(system_error("cannot write " + options.svg));
  }
  std::fputs((options.json ? to_json(view) : to_text(view, Colours(stdout))).c_str(), stdout);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<Options>();
  CLI::App* sub =
      app.add_subcommand("plan", "The groups chosen for a network, predicted time, why");
  add_options(*sub, o->source);
  sub->add_option("--bytes", o->bytes, "Size of the all-reduce")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  sub->add_option("--lanes", o->lanes, "Shuffled variants, as RIFFLE_LANES")
      ->check(CLI::Range(1, 64));
  sub->add_option("--only", o->only, "Force one kind, as RIFFLE_PLAN");
  sub->add_flag("--json", o->json, "Everything as JSON");
  sub->add_option("--svg", o->svg, "Also draw network and groups to this file");
  sub->footer(
      "The first line names what limits. Exit code 0: planned; 2: a bad file or option.\n"
      "Examples: riffle plan --profile racks8 --bytes 32M\n"
      "          riffle plan --fabric cluster.toml --nodes node01,node02,node07 --svg plan.svg");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
