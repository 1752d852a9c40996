// `riffle probe` started once per node by Slurm, MPI or torchrun: who we are, and how all meet at
// rank 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::tools {

struct Launch {
  int rank = 0;
  int local_rank = 0;  // on this node; only rank 0 of a node takes part
  int nodes = 0;
  std::string by;    // "Slurm", "Open MPI", "the environment"
  std::string host;  // where rank 0 runs
  int port = 0;      // and listens
};

// From the environment; none if nothing launched us as one of several. `rendezvous` is the user's
// HOST:PORT of rank 0; empty: from the environment, an error names the option where that does not
// tell.
Result<std::optional<Launch>> launched(const std::string& rendezvous);

// Rank 0: the sockets of the other nodes that came in time, in any order.
Result<std::vector<int>> await_ranks(const Launch& launch, int deadline_ms);
// The others: the socket to rank 0, which may come up later than we do.
Result<int> join_rank_0(const Launch& launch, int deadline_ms);

}  // namespace riffle::tools
