// What all peers share that run on the plugin: riffle, NCCL's own algorithms and BlueConnect, which
// take its NET transport.
#pragma once

#include <cstdint>

#include "bench/harness/worker.h"
#include "bench/peers/peer.h"
#include "lab/nccl_host/bootstrap.h"
#include "lab/nccl_host/progress_options.h"

namespace riffle::bench {

// NCCL's proxy spins, which small sums are the faster for. All nodes share this machine, so it does
// so for as long as those take; large ones leave the processors to other work. The thread that asks
// does its work, as Open MPI does; Gloo has a thread for what it receives.
inline constexpr host::ProgressOptions kProgress{.spin_us = 5000, .in_wait = true};

// A reducer's CPU time is that of the plugin's own threads. The others play NCCL and its GPU, which
// copy and reduce elsewhere. Always 0 where they leave all calls to the host's thread, whose
// time is not told apart (RIFFLE_POLLED_BYTES).
class PluginReducer : public AllReducer {
 public:
  std::int64_t cpu_us() const override;
};

// One process per node, `node_of_rank[rank]`, each of which runs `work`. The supervisor's exit
// code.
using PluginWork = std::function<Status(host::Bootstrap& bootstrap, int node)>;
int run_plugin_processes(const Site& site, const std::vector<int>& node_of_rank,
                         const PluginWork& work);

// Until the hub quits; then the library is ended, in order or, after a failure, at once.
template <class Library>
Status serve_and_end(const Site& site, int node, AllReducer& reducer, Library& library) {
  auto line = ControlLine::connect(site.control, node);
  if (!line) return line.status();
  const Status served = serve(line.value(), reducer, node, site.ranks);
  const Status ended = served ? library.destroy() : library.abort();
  return served ? ended : served;
}

}  // namespace riffle::bench
