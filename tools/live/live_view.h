// What a job does now: of every communicator, what `riffle explain` says of its last seconds, node
// by node, and the plan with its last change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/explain/explanation.h"
#include "tools/explain/job_record.h"

namespace riffle::tools {

// The traffic of a node in one direction while collectives ran.
struct LiveSide {
  double mbps = 0;
  double rate_mbps = 0;  // 0: not known
  double share = 0;      // of Resource
};

struct LiveNode {
  std::string name;
  LiveSide out, in;
  double waited_for = 0;           // of what the other nodes' groups waited for last, its share
  std::optional<double> sample_t;  // of its newest sample; none: it gave no record
  std::string lost;                // why; empty: it is not
};

struct LiveView {
  std::string comm;  // its key
  std::string slurm_job_id;
  Explanation now;      // of the window; all plans, modes and losses, since begin_t
  double begin_t = 0;   // of the window, Unix time; 0: there is no sample yet
  double newest_t = 0;  // of the newest sample; 0: likewise
  std::vector<LiveNode> nodes;
  std::optional<PlanEvent> plan;  // in force; its t is Unix time
};

// The samples of every node cut down to one, which holds what happened in the last `window_s`, or
// in as much of it as there is.
CommRecords last_seconds(CommRecords comm, double window_s);

// Of the connected communicators, the one with the newest sample and the most collective time
// first; those that stopped more than a window before the others come last.
std::vector<LiveView> view_live(const JobRecord& job, double window_s);

}  // namespace riffle::tools
