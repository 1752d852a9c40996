// `riffle env`: the variables for a job, ready for eval, as a file or as a module.
#include <cstdio>
#include <memory>

#include "tools/command.h"
#include "tools/env/formats.h"
#include "tools/locate.h"

namespace riffle::tools {
namespace {

struct EnvArguments {
  std::string release, format = "sh";
};

int print(const EnvArguments& options) {
  auto job = job_environment(options.release, plugin_place());
  if (!job) return report(job.status());
  job->command_folder = executable_folder();
  const auto text = in_format(options.format, *job);
  if (!text) return report(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace

void add_env(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<EnvArguments>();
  CLI::App* sub = app.add_subcommand("env", "The variables that make NCCL load Riffle");
  sub->add_option("--nccl", o->release, "NCCL release, e.g. 2.27.5; without it: a set for all");
  sub->add_option("--format", o->format, "What reads them")
      ->check(CLI::IsMember(format_names()))
      ->capture_default_str();
  sub->footer(
      "torch.cuda.nccl.version() tells the release that PyTorch brings.\n"
      "Examples:\n"
      "  eval \"$(riffle env --nccl 2.27.5)\"              sh, also in an sbatch script\n"
      "  eval \"`riffle env --format csh`\"                csh, tcsh\n"
      "  riffle env --format fish | source               fish\n"
      "  riffle env --format docker > riffle.env         docker run --env-file riffle.env\n"
      "  riffle env --format nccl.conf > ~/.nccl.conf    LD_LIBRARY_PATH stays the job's matter\n"
      "  riffle env --format lua > MODULEPATH/riffle/VERSION.lua     Lmod\n"
      "  riffle env --format tcl > MODULEPATH/riffle/VERSION         Environment Modules\n"
      "A TaskProlog of Slurm runs riffle env --format slurm and prints nothing else.");
  sub->callback([o, &exit_code] { exit_code = print(*o); });
}

}  // namespace riffle::tools
