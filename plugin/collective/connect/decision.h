// Node 0's decision when a communicator connects: may these nodes work together, on which fabric,
// by which plan, and is it better than NCCL's ring and tree? And every node's report that it is
// based on.
//
// Pure but for the fabric file and the short measurement of this machine in own_report().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/collective/base/plan_basis.h"
#include "plugin/collective/base/sync_mode.h"
#include "plugin/collective/connect/connect_options.h"
#include "plugin/collective/connect/messages.h"
#include "plugin/transport/device/device.h"
#include "topology/fabric/fabric.h"
#include "topology/fabric/racks_file.h"
#include "topology/plan/planner.h"

namespace riffle {

// This node's report. `rank` is its place in the communicator, `d` its network device, `job`
// the key under which the processes of this node published their knobs
// (collective/base/agreement.h).
NodeReport own_report(const ConnectOptions& options, int rank, const Device& d,
                      const std::string& job);

// What keeps these nodes from working together (another version, other knobs, a node's own
// problem); empty if nothing does.
std::string find_problem(const std::vector<NodeReport>& reports);

// Tests and trials: there is no network between them (equal host names, and equal boot ids where
// known).
bool are_one_machine(const std::vector<NodeReport>& reports);

// What the relaxed mode of `sync` is to run over on the fabric; none for exact, or where there is
// no schedule that mixes all nodes. `is_told`: a line says which, or why none. Any thread.
RelaxedPlans relaxed_plans(const Fabric& fabric, const SyncSettings& sync, bool is_told);
// What a relaxed step of 32 MiB over these groups, which are not empty, takes on the fabric. Any
// thread.
double relaxed_step_us(const Fabric& fabric, const RelaxedPlans& plans);

// Checks versions and knobs, reads the fabric, plans. `probed`: the network as it was measured, or
// null; a fabric file comes first. `racks`: known without measuring, or null; for a network that
// was not measured. `basis`, if given, gets what it planned on.
Verdict decide(const ConnectOptions& options, const std::vector<NodeReport>& reports,
               const Fabric* probed = nullptr, const Racks* racks = nullptr,
               PlanBasis* basis = nullptr);

// What a user should know if NCCL's own rings, which go by rank, take more than 1.25 times as long
// on the fabric as in the best order of its nodes; empty where they do not.
std::string order_advice(const Fabric& fabric);

// True if all-reduces by `choice` are at most 3 % slower than the better of NCCL's ring and tree
// (topology/plan/nccl_model.h) over TCP on these nodes, counting that we reduce on processors (the
// slowest node's) and NCCL on GPUs. RIFFLE_COLLNET=auto falls back to NCCL where it is false. `why`
// gets the figures. Without `knows_rates` the fabric's rates are guesses, and only the processors
// count.
bool is_worth_it(const Fabric& fabric, const PlanChoice& choice,
                 const std::vector<NodeReport>& reports, bool knows_rates, std::string* why);

}  // namespace riffle
