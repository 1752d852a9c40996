// Node 0's decision when a communicator connects: may these nodes work together, on which fabric,
// by which plan, and is it better than NCCL's own ring? And every node's report that it is based
// on.
//
// Pure but for the fabric file and the short measurement of this machine in own_report().
#pragma once

#include <string>
#include <vector>

#include "plugin/collective/messages.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/planner.h"

namespace riffle {

// This node's report. `rank` is its place in the communicator, `device` its network device, `job`
// the key under which the processes of this node published their knobs (policy/agreement.h).
NodeReport own_report(int rank, int device, const std::string& job);

// Checks versions and knobs, reads the fabric, plans. `used`, if given, gets the fabric that
// was planned for.
Verdict decide(const std::vector<NodeReport>& reports, Fabric* used = nullptr);

// True if all-reduces by `choice` are at most 3 % slower than NCCL's ring over the same network on
// these nodes, counting that we reduce on processors (the slowest node's) and NCCL on GPUs.
// RIFFLE_COLLNET=auto steps aside where it is false. `why` gets the figures. Without `knows_rates`
// the fabric's rates are guesses, and only the processors count.
bool is_worth_it(const Fabric& fabric, const PlanChoice& choice,
                 const std::vector<NodeReport>& reports, bool knows_rates, std::string* why);

}  // namespace riffle
