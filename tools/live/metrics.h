// The record of running jobs as metrics for Prometheus (docs/commands.md has the table). Labels
// are called as NCCL Inspector calls them: slurm_job_id, node, comm_id, comm_rank, n_nodes.
#pragma once

#include <string>

#include "tools/live/record_follower.h"

namespace riffle::tools {

// Ratios are of the last `window_s`; a communicator that has written nothing for a minute more than
// that has none. `now_t`: Unix time.
std::string metrics_text(const RecordFollower& record, double window_s, double now_t);

}  // namespace riffle::tools
