// One node of a job: all-reduces one after the other on every communicator, each by a thread, until
// one says that the job is over. Every element of every sum is checked: it tells which nodes are in
// it. Communicators that are closed leave no descriptors and no threads. What is wrong stands on
// the board.
#pragma once

#include <chrono>
#include <string>

#include "bench/soak/board.h"
#include "bench/soak/job.h"
#include "lab/nccl_host/bootstrap.h"
#include "topology/base/status.h"

namespace riffle::bench::soak {

struct WorkOptions {
  std::string plugin;
  std::chrono::seconds sum_limit;  // a sum that takes longer hangs
};
// An error only if the node could not begin; what happens later is on the board.
Status work(host::Bootstrap& bootstrap, const Job& job, const WorkOptions& options, Board& board);

std::int64_t now_ms();  // of this machine

}  // namespace riffle::bench::soak
