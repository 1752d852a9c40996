// How the processes of one command come together on several hosts: started there over ssh or what
// stands for it, or by srun, mpirun or torchrun, which started this one, too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugin/transport/reactor/socket.h"
#include "tools/probe/crew.h"

namespace riffle::tools {

struct Gathering {
  std::vector<std::string> hosts;  // empty: a launcher has started the processes
  std::string ssh = "ssh -o BatchMode=yes -o ConnectTimeout=10 -T";
  std::string riffle;      // the command on the hosts; empty: its own path
  std::string rendezvous;  // under a launcher: rank 0's HOST:PORT; empty: the launcher tells
  int timeout_s = 30;
  int timeout_ms() const { return 1000 * timeout_s; }
};

// What runs on every host.
struct PeerCommand {
  std::vector<std::string> words;                      // behind "riffle"
  std::function<bool(const std::string& name)> takes;  // variables that ssh carries there
};

struct Gathered {
  enum class Role {
    kAlone,     // neither hosts nor a launcher: nothing was started
    kOverSsh,   // the crew has a member per host
    kRankZero,  // of a launcher's processes: the crew has all of them, several of a host perhaps
    kPeer,      // another one of these, which serves over `road`
  };
  Role role = Role::kAlone;
  Fd road;
};

// Hosts that do not come are absent members of the crew. Errors: wrong hosts, and launchers that do
// not tell where to meet.
Result<Gathered> gather(const Gathering& options, const PeerCommand& peer, Crew& crew);

}  // namespace riffle::tools
