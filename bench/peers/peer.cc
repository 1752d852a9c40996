#include "bench/peers/peer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "lab/cluster/network.h"

namespace riffle::bench {

std::string Site::address(int rank) const {
  return cluster ? cluster::address_of(rank) : "127.0.0.1";
}

Status Site::enter(int rank) const { return cluster ? cluster->enter(rank) : Status::ok(); }

Result<pid_t> start(const Peer& peer, const Site& site, const std::string& log) {
  std::fflush(nullptr);  // or the child prints it again
  const pid_t owner = getpid();
  const pid_t pid = fork();
  if (pid < 0) return system_error(std::string("fork: ") + std::strerror(errno));
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner) _exit(1);
  setpgid(0, 0);  // Ctrl-C reaches the bench alone, which then ends us
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd >= 0) {
    dup2(fd, 1);
    dup2(fd, 2);
  }
  try {
    _exit(peer.supervise(site));
  } catch (const std::exception& e) {
    dprintf(2, "%s: %s\n", peer.name.c_str(), e.what());
    _exit(1);
  }
}

}  // namespace riffle::bench
