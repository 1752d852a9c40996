// On which cores the progress threads run: near the NIC, away from the job's busiest cores; and on
// which NUMA node their memory lies. Pure, any thread.
//
// The rule. Frameworks and NCCL start their threads from the first CPUs of what the job may use, so
// the last cores of the NIC's NUMA node are the least used of those nearby. The choice is a set (at
// least half of the job's cores on that node, one hardware thread each), never a single core: with
// one process per GPU all processes of a node make the same choice, and the kernel spreads their
// threads over the set. Nothing is chosen where there is nothing to win or something to lose:
//   - the job may use fewer than kFewestCores cores (containers, small machines),
//   - all cores are equally near (one NUMA node), or the NIC's place is unknown,
//   - the NICs of the device are spread over all NUMA nodes that the job uses,
//   - the job has no core near the NIC: others' cores are not ours to take.
// What is chosen is always part of `allowed`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/host/machine.h"

namespace riffle {

inline constexpr int kFewestCores = 8;

struct CoreRequest {
  CpuList allowed;                // what the job may use: its affinity mask
  std::vector<std::string> nics;  // interfaces that the threads serve
  int threads = 1;
};

struct CoreChoice {
  CpuList cpus;        // empty: leave the threads where they are
  std::string reason;  // one clause, e.g. "next to eth2 on NUMA node 1"
};

CoreChoice choose_cores(const Machine& machine, const CoreRequest& request);

// The NICs' NUMA node, for memory that the progress threads fill from them. None where the kernel's
// own choice (next to the thread that touches it first) is as good or better: one node, NICs on
// several or on none that is known, no core of the job there.
std::optional<int> choose_memory_node(const Machine& machine, const CoreRequest& request);

// The part of a list that a person gave for thread `index` of `threads`: its share where there is
// at least one CPU for each, else all of it.
CpuList share_of_thread(const CpuList& cpus, int index, int threads);

}  // namespace riffle
