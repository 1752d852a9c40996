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

Result<std::vector<Peer>> find_peers(const std::vector<std::string>& names, const Site& site) {
  std::vector<Peer> peers;
  for (const std::string& name : names) {
    if (name == "riffle" || name == "nccl-ring") {
      peers.push_back(plugin_peer(name, name == "nccl-ring"));
    } else if (name == "riffle-fixed") {
      peers.push_back(plugin_peer(name, false));
      peers.back().supervise = [start = peers.back().supervise](const Site& s) {
        setenv("RIFFLE_EPOCH", "0", 1);
        return start(s);
      };
    } else if (name == "riffle-exact") {
      peers.push_back(plugin_peer(name, false));
      peers.back().supervise = [start = peers.back().supervise](const Site& s) {
        setenv("RIFFLE_SYNC", "exact", 1);
        setenv("RIFFLE_SPARSE", "off", 1);
        return start(s);
      };
    } else if (name == "gloo") {
      for (const char* algorithm : {"ring", "chunked", "hd"}) {
        peers.push_back(gloo_peer(algorithm, site.programs));
        peers.back().title = "gloo";
      }
    } else if (name == "gloo-ring" || name == "gloo-chunked" || name == "gloo-hd") {
      peers.push_back(gloo_peer(name.substr(5), site.programs));
    } else if (name == "openmpi") {
      peers.push_back(openmpi_peer(site.programs));
    } else {
      return invalid_argument("no peer \"" + name +
                              "\"; there are riffle, riffle-fixed, riffle-exact, nccl-ring, gloo "
                              "(the best of gloo-ring, "
                              "gloo-chunked, gloo-hd) and openmpi");
    }
  }
  return peers;
}

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
