// `riffle cluster`: run a command once per node of an emulated cluster.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "test/cluster/cluster.h"
#include "tools/command.h"
#include "tools/locate.h"

namespace riffle::tools {
namespace {

struct Options {
  std::string profile;
  std::vector<std::string> command;
};

[[noreturn]] void run_on(const cluster::Cluster& cluster, int node, pid_t launcher,
                         const std::vector<std::string>& command) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(kFailed);
  if (Status s = cluster.enter(node); !s) _exit(report(s));
  setenv("RANK", std::to_string(node).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(cluster.size()).c_str(), 1);
  std::vector<char*> args;
  for (const std::string& a : command) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  execvp(args[0], args.data());
  _exit(report(system_error(command[0] + ": " + std::strerror(errno))));
}

int run(const Options& options) {
  const auto profile = cluster::load_profile(options.profile, profile_folder());
  if (!profile) return report(profile.status());
  const auto cluster = cluster::Cluster::create(profile.value());
  if (!cluster) return report(cluster.status());
  const pid_t launcher = getpid();
  for (int node = 0; node < cluster.value()->size(); ++node) {
    if (fork() == 0) run_on(*cluster.value(), node, launcher, options.command);
  }
  int worst = 0;
  for (int left = cluster.value()->size(); left > 0;) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (pid < 0 && errno != EINTR) break;
    if (pid < 0) continue;
    --left;
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return worst;
}

}  // namespace

void add_cluster(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* sub =
      app.add_subcommand("cluster", "Run a command on every node of an emulated cluster");
  sub->add_option("--profile", options->profile, "Name in bench/profiles, or a TOML file")
      ->required();
  sub->add_option("command", options->command, "Command and its arguments, after --")->required();
  sub->footer(
      "The command sees RANK and WORLD_SIZE as under torchrun, host name node<r> and address\n"
      "10.77.0.<r+1>.\n"
      "Example: riffle cluster --profile uniform8 -- sh -c 'hostname; ip -brief address'");
  sub->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace riffle::tools
