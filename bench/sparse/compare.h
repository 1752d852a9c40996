// The hub's side of `riffle bench --sparse-peers`: schemes in turn, iteration by iteration, every
// result checked.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/harness/session.h"
#include "bench/sparse/sparse_peer.h"

namespace riffle::bench {

struct SparseQuestion {
  std::vector<std::string> schemes;
  std::size_t bytes = 0;  // of float32
  double density = 0.01;
  int iters = 20, warmup = 2;
  // Of spardl-teams and spardl-reuse; 0: default_teams(), and what the plugin would choose if it
  // were told the network.
  int teams = 0;
  std::string gradients;     // file; empty: generated
  double dense_time_us = 0;  // riffle's exact all-reduce of as many bytes; 0: not measured
};

struct SparseRow {
  std::string profile, scheme;
  int ranks = 0, teams = 1;
  std::size_t bytes = 0;
  std::uint64_t kept = 0;  // k
  int iters = 0;
  // Medians over the iterations. Time: slowest rank's end minus first one's start, from when all
  // have their gradients until the last has the result's entries.
  double time_us = 0;
  std::vector<double> samples_us;  // in the order of the iterations
  double wire_us = 0;              // the same for a replay of the messages alone
  double compute_us = 0;   // of the scheme, mean worker: select, decode, add, select again, encode
  double reselect_us = 0;  // of that, selecting again
  double result_entries = 0;
  Sent sent;  // the worker that sends most, last iteration
  Formula formula;
  double tx_bytes = -1;  // on the wire, of the node that sends most, with all headers; -1: unknown
  double cpu_load = -1, wire_cpu_load = -1;  // of the whole machine, 0..1; -1: too short to tell
  int wrong = 0;       // iterations whose results differ between workers, or lost something
  double x_dense = 0;  // 0: not known

  bool cpu_bound() const { return cpu_load > 0.8; }
  bool wire_cpu_bound() const { return wire_cpu_load > 0.8; }
};

// Racks of equal size: as many, one each. Else the least number above 1 that divides the nodes.
int default_teams(const cluster::Profile& profile);
// Rank at each position: teams of nodes of one rack where racks are equal, else in the ranks'
// order.
std::vector<int> team_order(const cluster::Profile& profile, int teams);

// Whether compare() can take it: schemes, density, teams, a file of gradients that is large enough.
Status validate(const SparseQuestion& question, const cluster::Profile& profile);

// Starts the workers, measures, ends them. `progress` is told what goes on.
Result<std::vector<SparseRow>> compare(Session& session, const SparseQuestion& question,
                                       const std::function<void(const std::string&)>& progress);

std::string sparse_head(const SparseQuestion& question, const SparseRow& row);
std::string sparse_line(const SparseRow& row);
nlohmann::json to_json(const SparseRow& row);

}  // namespace riffle::bench
