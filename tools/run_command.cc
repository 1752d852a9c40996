// `riffle run`: a command with the variables of `riffle env` set.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tools/command.h"
#include "tools/env/nccl_environment.h"
#include "tools/locate.h"

namespace riffle::tools {
namespace {

// Exit codes of env, nohup and the shells.
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

// Returns only when there is nothing to run.
int become(const std::string& release, const std::vector<std::string>& command) {
  const PluginPlace place = plugin_place();
  const auto job = job_environment(release, place);
  if (!job) return report(job.status());
  if (place.file.empty()) std::fprintf(stderr, "riffle: %s\n", kPluginMissing);
  for (const Export& e : job->exports) {
    setenv(e.name.c_str(), value_over(e, std::getenv(e.name.c_str())).c_str(), 1);
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int cause = errno;
  report(system_error(command[0] + ": " + std::strerror(cause)));
  return cause == ENOENT ? kNotFound : kNotExecutable;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto release = std::make_shared<std::string>();
  auto program = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("run", "A command with the variables of riffle env set");
  sub->add_option("--nccl", *release, "NCCL release, e.g. 2.27.5; without it: a set for all");
  sub->add_option("command", *program, "Command and its arguments, after --")->required();
  // Arguments are no option of their own: CLI11 would make two of "[a,b]".
  sub->prefix_command();
  sub->footer(
      "An LD_LIBRARY_PATH that is set is kept, behind Riffle's folder.\n"
      "Example: torchrun --nnodes 8 ... --no-python riffle run -- python3 train.py\n"
      "Exit code: the command's; 127 not found, 126 not executable, 2 wrong usage.");
  sub->callback([sub, release, program, &exit_code] {
    std::vector<std::string> command = sub->remaining();
    if (!command.empty() && command.front() == "--") command.erase(command.begin());
    command.insert(command.begin(), *program);
    exit_code = become(*release, command);
  });
}

}  // namespace riffle::tools
