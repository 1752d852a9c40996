#include "lab/cluster/cluster.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lab/cluster/command.h"
#include "lab/cluster/congestion.h"
#include "lab/cluster/network.h"

namespace riffle::cluster {

Result<std::unique_ptr<Cluster>> Cluster::create(const Profile& profile) {
  if (Status s = namespaces_allowed(); !s) return s;
  if (Status s = check_congestion(profile.congestion); !s) return s;
  auto cpu_shares = CpuShares::plan(profile);
  if (!cpu_shares) return cpu_shares.status();
  auto namespaces = Namespaces::create(
      profile.size() + (profile.neighbour.node >= 0 ? 1 : 0),
      [&](const std::vector<pid_t>& holders) {
        const Status made = cpu_shares->make();
        return made ? set_up_switch(profile, holders) : made;
      },
      [&](int node) { return set_up_node(profile, node); }, [&] { cpu_shares->remove(); });
  if (!namespaces) return namespaces.status();
  std::unique_ptr<Cluster> cluster(
      new Cluster(profile, std::move(*cpu_shares), std::move(namespaces.value())));
  const Status started = cluster->background_.start(
      profile.flows, [&](int node) { return cluster->namespaces_->enter(node); });
  if (!started) return started;
  return cluster;
}

Status Cluster::enter(int node) const {
  // Before the namespaces: inside a user namespace the groups belong to another user.
  if (Status s = cpu_shares_.enter(node); !s) return s;
  return namespaces_->enter(node);
}

Result<std::string> Cluster::run(int node, const std::vector<std::string>& argv,
                                 int deadline_ms) const {
  int fds[2];
  if (pipe(fds) != 0) return system_error("no pipe");
  const pid_t owner = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != owner) _exit(1);
    const Status entered = enter(node);
    const auto output = entered ? run_command(argv, "", deadline_ms) : Result<std::string>(entered);
    const std::string text = output ? output.value() : output.status().message();
    const bool told = write(fds[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(output && told ? 0 : 1);
  }
  close(fds[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; pid > 0 && (n = read(fds[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(fds[0]);
  int status = 1;
  if (pid > 0) waitpid(pid, &status, 0);
  if (status == 0) return text;
  return system_error("node" + std::to_string(node) + ": " + (text.empty() ? "no answer" : text));
}

Result<WireBytes> Cluster::wire_bytes(int node) const {
  const std::string path =
      "/proc/" + std::to_string(holders()[static_cast<std::size_t>(node)]) + "/net/dev";
  std::ifstream file(path);
  WireBytes all;
  int nics = 0;
  for (std::string line; std::getline(file, line);) {
    const auto name = line.find("eth");
    const auto colon = line.find(':');
    if (name == std::string::npos || colon == std::string::npos) continue;
    std::istringstream fields(line.substr(colon + 1));
    WireBytes bytes;
    fields >> bytes.received;
    for (int i = 0; i < 8; ++i) fields >> bytes.sent;  // the ninth number
    if (!fields) continue;
    all.received += bytes.received;
    all.sent += bytes.sent;
    ++nics;
  }
  if (nics == profile_.nics) return all;
  return system_error("cannot read the interfaces' counters of node" + std::to_string(node) +
                      " in " + path);
}

}  // namespace riffle::cluster
