// What `riffle bench` is asked for, and what it asks of its peers.
#pragma once

#include <string>
#include <vector>

#include "bench/harness/contention.h"
#include "bench/harness/measure.h"
#include "bench/peers/peer.h"

namespace riffle::tools {

struct BenchOptions {
  std::string profile;
  std::vector<std::string> peers;
  std::vector<std::string> sizes = {"16M"};
  std::string type = "float", op = "sum", fabric = "live";
  std::string congestion = "cubic";  // "system": the machine's
  int iters = 5, warmup = 1;
  int peer_timeout_s = 0;  // 0: 60, and 3 where a fault is measured
  std::string json, record, on_loss;
  int rounds = 10;                    // of several plugins
  std::vector<std::string> settings;  // of one of several plugins each
  std::vector<std::string> plugins;   // several are measured in turns, and nothing else
  bool in_turns = false;              // Riffle and all of `peers`, likewise
  std::string sync = "exact";
  std::string sparse = "off";
  std::string wire = "exact";
  bool is_sparse() const { return sparse != "off"; }
  bool is_narrow() const { return wire != "exact"; }
  bool is_relaxed() const { return sync != "exact" || is_sparse() || is_narrow(); }
  std::string mode() const {
    return is_sparse() ? "--sparse " + sparse : is_narrow() ? "--wire " + wire : "--sync " + sync;
  }
  bool loopback = false;
  int nodes = 0;  // 0: as the profile says
  std::vector<std::string> sparse_peers;
  double density = 0.01;
  int teams = 0;  // 0: of racks, else the least
  std::string gradients;
  bool has_iters = false;
  std::vector<int> phases = {10, 40, 40};
  bench::ContentionOptions contention() const { return {phases[0], phases[1], phases[2]}; }
};

// One for each size. Says what is accepted where something is not.
Result<std::vector<bench::Question>> questions(const BenchOptions& options);

// As this peer is asked: --sync, --sparse and --wire are riffle's alone.
bench::Question question_to(const bench::Peer& peer, bench::Question question,
                            const BenchOptions& options);

}  // namespace riffle::tools
