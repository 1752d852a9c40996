// The libraries that `riffle bench` measures. Each peer starts one worker (harness/worker.h) per
// node under a supervisor process that dies with the bench and takes the workers along.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lab/cluster/cluster.h"
#include "topology/base/status.h"

namespace riffle::bench {

// Where the workers run and what they need.
struct Site {
  const cluster::Cluster* cluster = nullptr;  // null: all on loopback
  int ranks = 0;
  std::string folder;    // temporary, ours
  std::string control;   // socket of the hub
  std::string fabric;    // fabric file; empty: none
  std::string plugin;    // the shared object
  std::string programs;  // folder of riffle_bench_gloo and riffle_bench_mpi
  int peer_timeout_s = 60;

  std::string address(int rank) const;
  // In a fresh process: move to the rank's node.
  Status enter(int rank) const;
};

struct Peer {
  std::string name;
  // Rows of peers with the same title compete: only the fastest is shown. Usually the name itself.
  std::string title;
  std::string missing;  // why it cannot run here, with the remedy; empty: it can
  // The supervisor's whole life; its result is the process's exit code.
  std::function<int(const Site&)> supervise;
};

// riffle, riffle-fixed (its first plan stays), riffle-exact (whatever RIFFLE_SYNC says), nccl-ring,
// gloo (= gloo-ring, gloo-chunked, gloo-hd), openmpi. Unknown names are errors.
Result<std::vector<Peer>> find_peers(const std::vector<std::string>& names, const Site& site);

// The supervisor as a child process, its output and that of its workers in `log`.
Result<pid_t> start(const Peer& peer, const Site& site, const std::string& log);

// Parts of find_peers.
Peer plugin_peer(const std::string& name, bool ring_only);
Peer gloo_peer(const std::string& algorithm, const std::string& programs);
Peer openmpi_peer(const std::string& programs);

}  // namespace riffle::bench
