// Silent strangers that knock at a node of an emulated cluster, in a process of their own on the
// cluster's neighbour, for as long as the object lives.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "lab/cluster/cluster.h"

namespace riffle::bench {

// Listeners in the network namespace of a process, by their ports; an error: it has none.
Result<std::vector<std::uint16_t>> listening_ports(pid_t process);

class Flood {
 public:
  // At those ports of the node. The cluster's profile has a neighbour; the cluster and the calling
  // thread outlive the flood.
  static Result<std::unique_ptr<Flood>> start(const cluster::Cluster& cluster, int node,
                                              const std::vector<std::uint16_t>& ports,
                                              int per_second);
  ~Flood();
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  std::uint64_t knocks() const { return *knocks_; }  // so far

 private:
  Flood();
  std::atomic<std::uint64_t>* knocks_;  // shared with the process
  pid_t process_ = -1;
};

}  // namespace riffle::bench
