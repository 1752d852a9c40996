// What was wrong with a job, from what its nodes saw and how their processes ended. A pure
// function.
#pragma once

#include <string>
#include <vector>

#include "bench/soak/board.h"
#include "bench/soak/job.h"
#include "lab/nccl_host/launcher.h"
#include "topology/base/status.h"

namespace riffle::bench::soak {

// `exits`: of host::launch; an error: nodes had to be killed. Each finding names its node.
std::vector<std::string> findings_of(const Job& job, const Board& board, int nodes,
                                     const Result<std::vector<host::RankExit>>& exits);

}  // namespace riffle::bench::soak
