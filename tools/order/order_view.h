// An order of hosts for NCCL's own rings (topology/plan/rank_order.h): what it gains, and the files
// by which launchers follow it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/base/status.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/rank_order.h"

namespace riffle::tools {

struct OrderOptions {
  int group = 1;                   // as for best_rank_order()
  int slots = 1;                   // ranks per host
  std::uint64_t bytes = 16 << 20;  // of the all-reduces that times are of
};

// Rings of `members` hosts, before (in the fabric's order) and after.
struct RingsChange {
  int members = 0;
  RingsTime before, after;
  double bound_us = 0;
};

struct OrderView {
  const Fabric* fabric;
  OrderOptions options;
  std::vector<int> order;
  std::vector<RingsChange> rings;                  // of all hosts; of the groups, if there are any
  double trees_before_us = 0, trees_after_us = 0;  // NCCL's; 0: one host

  // What the slowest rings take before and after, and the least that they could take.
  std::string headline() const;
  const std::string& host(int place) const { return fabric->nodes[order[place]].name; }
};

// The best order of the fabric's nodes, which must outlive the view. An error where the options do
// not fit them.
Result<OrderView> view_order(const Fabric& fabric, const OrderOptions& options);

// What launchers read. `format` is one of kOrderFormats:
//   text      what changes, then rank and host, one host per line
//   hostfile  Open MPI's --hostfile
//   rankfile  Open MPI's --rankfile
//   slurm     SLURM_HOSTFILE of srun --distribution=arbitrary: a line per task
//   torchrun  a line per host: its name, then the options that give it its place
//   mpijob    YAML: -H for the launcher of an MPIJob, the host of every worker (PyTorchJob's, too)
//   json      everything
inline const std::vector<std::string> kOrderFormats = {"text",     "hostfile", "rankfile", "slurm",
                                                       "torchrun", "mpijob",   "json"};
// An error if the names of hosts cannot stand in such a file.
Result<std::string> written(const OrderView& view, const std::string& format);

}  // namespace riffle::tools
