// The libraries that `riffle bench` measures. Each peer starts one worker (harness/worker.h) per
// node under a supervisor process that dies with the bench and takes the workers along.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lab/cluster/cluster.h"
#include "lab/nccl_host/work/cost_model.h"
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
  std::string missing;           // why it cannot run here, with the remedy; empty: it can
  bool is_external = false;      // a library of others: its wrong results are not Riffle's
  std::string network = "none";  // Row::network; empty: "file" or "live", as the site says
  // The supervisor's whole life; its result is the process's exit code.
  std::function<int(const Site&)> supervise;
};

// What `riffle bench --peers` takes, one line per name.
std::string peer_names();

// The peers behind each name, in order: one, or several of one title. Unknown names are errors.
Result<std::vector<Peer>> find_peers(const std::vector<std::string>& names, const Site& site);

// The supervisor as a child process, its output and that of its workers in `log`.
Result<pid_t> start(const Peer& peer, const Site& site, const std::string& log);

// Parts of find_peers.
using Environment = std::vector<std::pair<std::string, std::string>>;
Peer riffle_peer(const std::string& name, const Environment& environment = {});

struct NcclSettings {
  host::Algorithm algorithm = host::Algorithm::kRing;  // ring or tree
  bool in_rack_order = false;                          // else ranks are nodes as they lie
  std::size_t buffer_bytes = std::size_t{4} << 20;     // NCCL_BUFFSIZE; by default as NCCL
};
Peer nccl_peer(const std::string& name, const NcclSettings& settings);

// chunk_bytes: what goes through the three stages at a time.
Peer blueconnect_peer(const std::string& name, std::size_t chunk_bytes);
// ring, bcube, ring-classic, chunked, hd or bcube-classic.
Peer gloo_peer(const std::string& algorithm, const std::string& programs, int ranks);
// "" (its own decision) or a name of coll_tuned_allreduce_algorithm.
Peer openmpi_peer(const std::string& algorithm, const std::string& programs);

}  // namespace riffle::bench
