// Schedules: who meets whom in a relaxed mode. A schedule is a table of steps x lanes; every entry
// is a partition of the nodes into groups that average among themselves. Step t of the period is
// for the t-th relaxed call of a bucket, the lane is the chunk's (s % lanes): each element sees one
// lane only, so every lane must mix all nodes by itself.
//
// A partition is a partial GroupPlan: one level of disjoint `direct` groups that each span the
// whole buffer. A node that stands in no group keeps its value in that step. Lanes run the same
// partitions in different phases, so that only a fraction of the chunks crosses a narrow uplink, or
// waits for a slow node, in any one step.
//
// Pure and deterministic: the same integer rates, options and seed in, the same table on every
// machine. No threads, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/plan/group_plan.h"
#include "topology/plan/planner.h"

namespace riffle {

inline constexpr std::size_t kMaxScheduleSteps = 256;

struct ScheduleTable {
  std::string name;  // e.g. "grid 4 x 2", human-readable
  int nodes = 0;
  int steps = 0, lanes = 0;           // both at least 1; at most kMaxScheduleSteps, kMaxPlanLanes
  std::vector<GroupPlan> partitions;  // the distinct ones
  std::vector<std::uint32_t> table;   // steps x lanes indices of partitions, lanes counting fastest
  std::uint32_t chunk_bytes = 0;      // found best for the size asked for; 0: the engine's own

  // The partition of iteration `step` (any number from 0 on) for a chunk of that lane.
  const GroupPlan& at(std::uint64_t step, std::size_t lane) const {
    return partitions[table[step % steps * lanes + lane]];
  }
  bool operator==(const ScheduleTable&) const = default;
};

// ok iff the plan is one level of `direct` groups over the whole buffer that share no node.
Status validate_partition(const GroupPlan& plan);
// ... and the table has the sizes it says, indices in range, partitions of its number of nodes.
// Safe for a table from the wire. Says nothing of mixing: see contraction.h.
Status validate(const ScheduleTable& table);

enum class ScheduleMode : std::uint8_t {
  kDsSync,      // the fastest groups that pass the limits below
  kMoshpit,     // a grid (random groups where it would be under 75 % full), one level per step
  kShadowSync,  // for rounds in the background: what a round costs counts less, mixing more
};

struct ScheduleOptions {
  std::uint64_t seed = 1;          // of the labels that nodes take in the groups
  std::uint64_t bytes = 32 << 20;  // of the calls that it is for
  int max_lanes = 32;
  int shuffles = 1;  // times that alike nodes change places before the table repeats
  // Stationary, in units of sigma^2; a schedule above it is not used. Beyond 1.5 training suffers
  // more than speed is worth (docs/policies.md); this leaves a margin.
  double max_deviation = 1.25;
  int dimensions = 0;  // moshpit: of the grid; 0: the fastest that passes
  std::string only;    // force one kind by name; empty: best
  std::int64_t message_ns = kMessageNs;
  double delta = 1;        // shadow_sync: part of the difference that a round corrects
  int round_steps = 1;     // shadow_sync: steps per round
  double kept = 1;         // shadow_sync: part of a round's gradients that its end leaves to a node
  bool all_nodes = false;  // shadow_sync: all nodes in one group, and nothing else
};

struct ScheduleCandidate {
  std::string name;
  double time_us = 0;      // predicted, mean over the steps of the period
  double slowest_us = 0;   // of the slowest step
  std::string limit;       // the link that limits most steps
  double contraction = 1;  // of the variance, per step in the long run; 0: exact every period
  double norm = 1;         // p = 1 - norm in theory's bounds: squared norm of the period's product
  double deviation = 0;  // E|y_i - mean|^2 / sigma^2, mean over nodes, steps and lanes; stationary
  double worst_deviation = 0;  // of the node that deviates most
  double group_size = 0;       // the least, over the nodes, of its mean group size
  std::string refused;         // why it may not be used; empty: it may
};

struct ScheduleChoice {
  ScheduleTable table;
  ScheduleCandidate quality;                  // of the table
  std::vector<int> dimensions;                // of the full grid that it is; empty: it is none
  double exact_us = 0;                        // the planner's best exact plan for the same bytes
  std::vector<ScheduleCandidate> candidates;  // all considered, the chosen one first
  std::string reason;
};

// Verified before it returns: a table that does not contract in every lane is never chosen. An
// error if there is nothing to choose (1 node, `only` unknown or refused).
Result<ScheduleChoice> choose_schedule(const Fabric& fabric, ScheduleMode mode,
                                       const ScheduleOptions& options);

// What a step over a valid table takes on a fabric of as many nodes, as ScheduleCandidate::time_us,
// in chunks of the size that is best there.
double predicted_us(const Fabric& fabric, const ScheduleTable& table,
                    const ScheduleOptions& options);

}  // namespace riffle
