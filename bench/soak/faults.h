// Does to the nodes of a job what was drawn for it, then says that it is over.
#pragma once

#include <sys/types.h>

#include <vector>

#include "bench/soak/board.h"
#include "bench/soak/job.h"
#include "lab/cluster/cluster.h"

namespace riffle::bench::soak {

// In a process of one thread, which it ends. `pids`: of the nodes.
[[noreturn]] void inject(const Job& job, const cluster::Cluster& cluster,
                         const std::vector<pid_t>& pids, Board& board);

}  // namespace riffle::bench::soak
