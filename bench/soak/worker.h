// One node of a job: all-reduces one after the other on every communicator, each by a thread, until
// one says that the job is over. Every element of every sum is checked: it tells which nodes are in
// it. What is wrong stands on the board.
#pragma once

#include <string>

#include "bench/soak/board.h"
#include "bench/soak/job.h"
#include "lab/nccl_host/bootstrap.h"
#include "topology/base/status.h"

namespace riffle::bench::soak {

// An error only if the node could not begin; what happens later is on the board.
Status work(host::Bootstrap& bootstrap, const Job& job, const std::string& plugin, Board& board);

std::int64_t now_ms();  // of this machine
// The first that a node has is kept.
void find(Board& board, int node, const std::string& what);

}  // namespace riffle::bench::soak
