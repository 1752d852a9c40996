// `riffle env`: the exports for a job, ready for eval.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "tools/command.h"
#include "tools/env/nccl_environment.h"
#include "tools/locate.h"

namespace riffle::tools {
namespace {

int print(const std::string& release) {
  int code = 0;
  if (!release.empty()) {
    const auto parsed = parse_release(release);
    if (!parsed) return report(parsed.status());
    code = parsed.value();
  }
  const std::string plugin = plugin_file();
  const std::string folder =
      plugin.empty() ? "" : std::filesystem::path(plugin).parent_path().string();
  std::printf("# Riffle under %s\n",
              code ? ("NCCL " + release_name(code)).c_str() : "any NCCL from 2.12.7 to 2.30");
  for (const Export& e : needed_exports(code, folder)) {
    std::printf("export %s=%s  # %s\n", e.name.c_str(), e.value.c_str(), e.why.c_str());
  }
  if (folder.empty()) {
    std::printf(
        "# libnccl-net-riffle.so is not beside this command: its folder must be in "
        "LD_LIBRARY_PATH\n");
  }
  for (const std::string& limit : limits_of(code)) std::printf("# %s\n", limit.c_str());
  return 0;
}

}  // namespace

void add_env(CLI::App& app, int& exit_code) {
  auto release = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("env", "The variables that make NCCL load Riffle");
  sub->add_option("--nccl", *release, "NCCL release, e.g. 2.27.5; without it: a set for all");
  sub->footer(
      "torch.cuda.nccl.version() tells the release that PyTorch brings.\n"
      "Example: eval \"$(riffle env --nccl 2.27.5)\"");
  sub->callback([release, &exit_code] { exit_code = print(*release); });
}

}  // namespace riffle::tools
