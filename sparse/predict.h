// What a sparse all-reduce of a buffer takes on a fabric, for the decision whether and in which
// teams to run one; not a simulator.
//
//   time = max(busiest link,             all steps of all chunks: chunks overlap
//              processor,                adding, selecting and writing, one thread
//              one chunk after another / how many are under way)
//        + what the first chunk takes longer, because its steps come one after the other
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparse/layout.h"
#include "sparse/schedule.h"
#include "topology/fabric/fabric.h"

namespace riffle::sparse {

struct SparsePlan {
  int teams = 1;
  Across across = Across::kGathered;
  std::vector<int> node_at;  // by position
};

struct SparseTime {
  double total_us = 0;
  double network_us = 0;    // of the busiest link
  double processor_us = 0;  // of a node's thread
  double chunk_us = 0;      // all steps of one chunk, alone
};

struct Machine {
  // Megabytes of float32 gradients per second that one thread adds, selects from and writes
  // (measure_exchange); 0: not known, counts as fast enough.
  double exchange_mbps = 0;
  int under_way = 8;  // chunks at once: NCCL's outstanding calls
};

// A buffer of `elements` elements in chunks of at most `chunk_elements`.
SparseTime predict(const Fabric& fabric, const SparsePlan& plan, double density,
                   std::uint64_t elements, std::uint64_t chunk_elements, const Machine& machine);

// The fastest plan; `teams` of 0 tries all divisors of the number of nodes. Nodes of one rack stand
// side by side, so that teams can be racks, or nodes of all racks in turns.
SparsePlan best_plan(const Fabric& fabric, int teams, double density, std::uint64_t elements,
                     std::uint64_t chunk_elements, const Machine& machine);

// Of this machine: some milliseconds of work, in processor time of the calling thread.
double measure_exchange_mbps();

}  // namespace riffle::sparse
