// One row of the bench: one peer, one size, several all-reduces, each checked.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/harness/control.h"
#include "bench/peers/peer.h"
#include "lab/nccl_host/work/reduction.h"

namespace riffle::bench {

struct Question {
  std::size_t bytes = 0;
  DataType type = DataType::kFloat32;
  host::Op op = host::Op::kSum;
  int iters = 5;
  int warmup = 1;
  // The nodes' results may differ, as long as they add up to the right sum (relaxed modes; float
  // sums from 1 MiB up).
  bool is_relaxed = false;
  // Nor in each step do they (shadow_sync, whose rounds bring the rest later): nothing is checked.
  bool is_background = false;
  // Nor do all elements come out (sparse sums; float32): data like gradients, and what is checked
  // is that all nodes get the same bits.
  bool is_sparse = false;
  // Of a sparse result, where it is known what it must be; else 0.
  double density = 0;
  // Above 0: elements are rounded on their way, each by so much of its magnitude at most (sums in a
  // narrower type). All nodes must get the same bits, which add up that well.
  double rounding = 0;
};

// One that competed under the row's title and was not the fastest.
struct Rival {
  std::string variant;
  double time_us = 0;
  std::string failure;             // not empty: why it has no time that counts
  bool is_wrong = false;           // ... that it was not right
  std::vector<double> samples_us;  // one where it was out of the race after its first
};

struct Row {
  std::string profile, peer, variant;  // variant: which of the competing peers it was
  // What the peer knew of the network: "live" (what it found itself), "file" (all of it), "racks"
  // (which nodes share one), "none".
  std::string network;
  std::string congestion;  // TCP's, of all sockets between nodes; "system": each as it would
  Question question;
  double time_us = 0;  // median over the iterations; slowest rank's end minus first's start
  double mean_us = 0;
  // Every iteration in its order; of small sums the mean of the 20 that are one iteration.
  std::vector<double> samples_us;
  double bound_us = 0;    // 0: no bound (links without rate)
  std::size_t wrong = 0;  // elements, over all ranks and iterations
  double cpu_load = 0;    // of the whole machine while the all-reduces ran, 0..1; -1: too short
  // CPU seconds of the library per GB of buffer and node; 0: not known (plugin_process.h).
  double cpu_s_per_gb = 0;
  double sent_per_byte =
      -1;               // bytes on the wire that the busiest node sent per buffer byte; -1: unknown
  double not_zero = 1;  // part of a result's elements, in the last iteration; only if is_sparse
  bool off_wire = false;  // some node sent or received less than any exact all-reduce must
  int ranks = 0;
  // Of its plan, that riffle logged between the measured all-reduces; -1: not counted.
  int plan_changes = -1;
  std::vector<Rival> rivals;

  double algbw_gbs() const { return static_cast<double>(question.bytes) / time_us / 1e3; }
  double busbw_gbs() const { return algbw_gbs() * 2 * (ranks - 1) / ranks; }
  double x_bound() const { return bound_us > 0 ? time_us / bound_us : 0; }
  bool cpu_bound() const { return cpu_load > 0.8; }
  // Equal bits everywhere are not enough: a sum of nothing has them, too. The share that comes out
  // is near the density, but not the same: selection may be by the threshold of the step before.
  bool is_density_wrong() const {
    return question.density > 0 &&
           (not_zero < question.density / 2 || not_zero > 3 * question.density);
  }
  bool is_wrong() const { return wrong > 0 || off_wire || is_density_wrong(); }
  // Faster, and no worse for that.
  bool beats(const Row& other) const {
    return is_wrong() == other.is_wrong() ? time_us < other.time_us : other.is_wrong();
  }
};

// Asks the workers behind the hub. `progress` is told after every iteration.
Result<Row> measure(ControlHub& hub, const Site& site, const Question& question,
                    const std::function<void(int done)>& progress);

}  // namespace riffle::bench
