// `riffle cluster`: run a command once per node of an emulated cluster.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "lab/cluster/cluster.h"
#include "lab/cluster/neighbour.h"
#include "lab/cluster/profile_file.h"
#include "tools/command.h"
#include "tools/locate.h"
#include "tools/output_file.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::tools {
namespace {

struct ClusterArguments {
  std::string profile, fabric, congestion;
  std::uint64_t seed = 0;
  bool neighbour = false, print = false;
  std::vector<std::string> command;
};

constexpr int kGraceS = 5;  // that commands have to end by a signal

[[noreturn]] void run_on(const cluster::Cluster& cluster, int node, pid_t launcher,
                         const sigset_t& signals, const std::vector<std::string>& command) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(kFailed);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (Status s = cluster.enter(node); !s) _exit(report(s));
  setenv("RANK", std::to_string(node).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(cluster.size()).c_str(), 1);
  std::vector<char*> args;
  for (const std::string& a : command) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  execvp(args[0], args.data());
  _exit(report(system_error(command[0] + ": " + std::strerror(errno))));
}

Status write_fabric(const cluster::Profile& profile, const std::string& path) {
  if (profile.shaped()) return write_file(path, to_toml(fabric_of(profile)));
  return invalid_argument("--fabric: profile " + profile.name + " has nodes without a rate");
}

// Signals that end this command, and those of children that have ended, for sigtimedwait().
class WaitedSignals {
 public:
  WaitedSignals() {
    sigemptyset(&all_);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&all_, s);
    sigprocmask(SIG_BLOCK, &all_, &before_);
  }
  ~WaitedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;
  const sigset_t& before() const { return before_; }
  // 0: none within a second.
  siginfo_t next() const {
    siginfo_t found{};
    const timespec second{1, 0};
    if (sigtimedwait(&all_, &found, &second) < 0) found = {};
    return found;
  }

 private:
  sigset_t all_{}, before_{};
};

void signal_all(const std::vector<pid_t>& nodes, int number) {
  for (const pid_t pid : nodes) kill(pid, number);
}

// The worst exit status. A signal that ends this command goes to all, so that they can end what
// they have started in sessions of their own; who does not end by it is killed.
int wait_for(std::vector<pid_t> nodes, const WaitedSignals& signals) {
  int worst = 0, ended_by = 0;
  time_t deadline = 0;
  while (!nodes.empty()) {
    const siginfo_t signal = signals.next();
    if (signal.si_signo != 0 && signal.si_signo != SIGCHLD && ended_by == 0) {
      ended_by = signal.si_signo;
      deadline = time(nullptr) + kGraceS;
      // A terminal's reaches all of its foreground processes anyway.
      if (signal.si_code != SI_KERNEL) signal_all(nodes, SIGTERM);
    }
    if (ended_by != 0 && time(nullptr) > deadline) signal_all(nodes, SIGKILL);
    std::erase_if(nodes, [&worst](pid_t pid) {
      int status = 0;
      if (waitpid(pid, &status, WNOHANG) != pid) return false;
      worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      return true;
    });
  }
  return ended_by != 0 ? 128 + ended_by : worst;
}

int run(const ClusterArguments& options) {
  auto profile = cluster::load_profile(options.profile, profile_folder());
  if (!profile) return report(profile.status());
  profile->congestion = options.congestion;
  if (options.print) std::fputs(cluster::to_toml(*profile).c_str(), stdout);
  if (!options.fabric.empty()) {
    if (Status s = write_fabric(*profile, options.fabric); !s) return report(s);
  }
  if (options.command.empty()) return 0;
  if (options.neighbour && profile->neighbour.node < 0) {
    return report(invalid_argument("--neighbour: profile " + profile->name + " has none"));
  }
  const auto cluster = cluster::Cluster::create(profile.value());
  if (!cluster) return report(cluster.status());
  std::unique_ptr<cluster::NeighbourFlow> flow;
  if (options.neighbour) {
    auto started = cluster::NeighbourFlow::start(*cluster.value());
    if (!started) return report(started.status());
    flow = std::move(*started);
  }
  const WaitedSignals signals;
  const pid_t launcher = getpid();
  std::vector<pid_t> nodes;
  for (int node = 0; node < cluster.value()->size(); ++node) {
    const pid_t pid = fork();
    if (pid == 0) run_on(*cluster.value(), node, launcher, signals.before(), options.command);
    if (pid < 0) return report(system_error(std::string("fork: ") + std::strerror(errno)));
    nodes.push_back(pid);
  }
  return wait_for(std::move(nodes), signals);
}

}  // namespace

void add_cluster(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ClusterArguments>();
  CLI::App* sub =
      app.add_subcommand("cluster", "Run a command on every node of an emulated cluster");
  CLI::Option* const profile = sub->add_option(
      "--profile", options->profile, "Name in bench/profiles, a TOML file, or random:SEED");
  CLI::Option* const random =
      sub->add_option("--random", options->seed, "A network drawn from this number: random:SEED");
  random->excludes(profile);
  CLI::Option* const print =
      sub->add_flag("--print", options->print, "Print the profile as a TOML file");
  CLI::Option* const fabric = sub->add_option(
      "--fabric", options->fabric, "File for the true network, as RIFFLE_FABRIC reads it");
  sub->add_option("--congestion", options->congestion,
                  "TCP congestion control of every socket between nodes, whatever it asks for, as "
                  "in `riffle bench`; by default the machine's, and Riffle's own choice");
  sub->add_flag("--neighbour", options->neighbour, "With the profile's foreign flow, all the time");
  sub->add_option("command", options->command,
                  "Command and its arguments, after --; may be absent with --print or --fabric");
  sub->footer(
      "The command sees RANK and WORLD_SIZE as under torchrun, host name node<r> (or node, where "
      "a\n"
      "profile has host_names = \"equal\") and address 10.77.0.<r+1>.\n"
      "Example: riffle cluster --profile uniform8 -- sh -c 'hostname; ip -brief address'");
  sub->callback([options, profile, random, print, fabric, &exit_code] {
    if (!random->empty()) options->profile = "random:" + std::to_string(options->seed);
    if (random->empty() && profile->empty()) throw CLI::RequiredError("--profile or --random");
    if (options->command.empty() && print->empty() && fabric->empty()) {
      throw CLI::RequiredError("command");
    }
    exit_code = run(*options);
  });
}

}  // namespace riffle::tools
