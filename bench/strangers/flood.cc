#include "bench/strangers/flood.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <new>
#include <sstream>
#include <string>

#include "lab/cluster/network.h"
#include "lab/cluster/strangers.h"

namespace riffle::bench {
namespace {

in_addr address(int node) {
  in_addr a{};
  inet_pton(AF_INET, cluster::address_of(node).c_str(), &a);
  return a;
}

}  // namespace

Result<std::vector<std::uint16_t>> listening_ports(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/net/tcp";
  std::ifstream table(path);
  std::vector<std::uint16_t> ports;
  for (std::string line, place, local, remote, state; std::getline(table, line);) {
    std::istringstream(line) >> place >> local >> remote >> state;
    if (state != "0A" || local.size() != 13) continue;
    ports.push_back(static_cast<std::uint16_t>(std::stoul(local.substr(9), nullptr, 16)));
  }
  if (ports.empty()) return system_error("no listener in " + path);
  return ports;
}

Flood::Flood() {
  void* const at =
      mmap(nullptr, sizeof *knocks_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  knocks_ = new (at) std::atomic<std::uint64_t>(0);
}

Flood::~Flood() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  munmap(knocks_, sizeof *knocks_);
}

Result<std::unique_ptr<Flood>> Flood::start(const cluster::Cluster& cluster, int node,
                                            const std::vector<std::uint16_t>& ports,
                                            int per_second) {
  std::unique_ptr<Flood> flood(new Flood);
  const pid_t owner = getpid();
  flood->process_ = fork();
  if (flood->process_ < 0) return system_error("cannot start the strangers' process");
  if (flood->process_ > 0) return flood;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int outside = cluster.size();
  if (getppid() != owner || !cluster.enter(outside)) _exit(1);
  std::vector<cluster::Door> doors;
  for (const std::uint16_t port : ports) {
    cluster::Door door;
    door.at.sin_family = AF_INET;
    door.at.sin_port = htons(port);
    door.at.sin_addr = address(node);
    doors.push_back(door);
  }
  const cluster::Strangers strangers(std::move(doors), address(outside),
                                     cluster::StrangerKind::kSilent, per_second);
  for (;; usleep(1000)) *flood->knocks_ = strangers.knocks();
}

}  // namespace riffle::bench
