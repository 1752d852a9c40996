#include "lab/cluster/neighbour.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "lab/cluster/network.h"

namespace riffle::cluster {
namespace {

constexpr std::uint16_t kPort = 7011;
constexpr std::size_t kPieceBytes = 128 << 10;
constexpr int kConnectAttempts = 500;

sockaddr_in address(int node) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(kPort);
  inet_pton(AF_INET, address_of(node).c_str(), &a.sin_addr);
  return a;
}

[[noreturn]] void receive(int self) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in at = address(self);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) _exit(1);
  if (listen(listener, 1) != 0) _exit(1);
  const int from = accept(listener, nullptr, nullptr);
  std::vector<char> waste(kPieceBytes);
  while (from >= 0 && recv(from, waste.data(), waste.size(), 0) > 0) {
  }
  _exit(0);
}

[[noreturn]] void send_to(int peer) {
  const sockaddr_in to = address(peer);
  for (int i = 0; i < kConnectAttempts; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
      const std::vector<char> zeros(kPieceBytes);
      while (send(fd, zeros.data(), zeros.size(), MSG_NOSIGNAL) > 0) {
      }
      _exit(0);
    }
    close(fd);
    usleep(10000);
  }
  _exit(1);
}

}  // namespace

Result<std::unique_ptr<NeighbourFlow>> NeighbourFlow::start(const Cluster& cluster) {
  const int node = cluster.profile().neighbour.node;
  RIFFLE_CHECK(node >= 0, "the profile has no neighbour");
  std::unique_ptr<NeighbourFlow> flow(new NeighbourFlow);
  const pid_t owner = getpid();
  const auto as_process_of = [&](int self, auto what) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != owner || !cluster.enter(self)) _exit(1);
      what();
    }
    if (pid > 0) flow->processes_.push_back(pid);
    return pid > 0;
  };
  for (const auto& [from, to] :
       {std::pair(node, cluster.size()), std::pair(cluster.size(), node)}) {
    if (!as_process_of(to, [to = to] { receive(to); }) ||
        !as_process_of(from, [to = to] { send_to(to); })) {
      return system_error("cannot start the neighbour's processes");
    }
  }
  return flow;
}

NeighbourFlow::~NeighbourFlow() {
  for (const pid_t pid : processes_) kill(pid, SIGKILL);
  for (const pid_t pid : processes_) waitpid(pid, nullptr, 0);
}

}  // namespace riffle::cluster
