#include "lab/cluster/cluster.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lab/cluster/command.h"
#include "lab/cluster/network.h"

namespace riffle::cluster {

Result<std::unique_ptr<Cluster>> Cluster::create(const Profile& profile) {
  if (Status s = namespaces_allowed(); !s) return s;
  auto namespaces = Namespaces::create(
      profile.size() + (profile.neighbour.node >= 0 ? 1 : 0),
      [&](const std::vector<pid_t>& holders) { return set_up_switch(profile, holders); },
      [&](int node) { return set_up_node(profile, node); });
  if (!namespaces) return namespaces.status();
  return std::unique_ptr<Cluster>(new Cluster(profile, std::move(namespaces.value())));
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
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find("eth0:");
    if (colon == std::string::npos) continue;
    std::istringstream fields(line.substr(colon + 5));
    WireBytes bytes;
    fields >> bytes.received;
    for (int i = 0; i < 8; ++i) fields >> bytes.sent;  // the ninth number
    if (fields) return bytes;
  }
  return system_error("cannot read eth0's counters of node" + std::to_string(node) + " in " + path);
}

}  // namespace riffle::cluster
