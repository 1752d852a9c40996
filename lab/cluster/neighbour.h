// Foreign traffic on one node's link: a TCP flow in each direction between the node and one
// more node of the cluster, as fast as the network takes it, while the object lives.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "lab/cluster/cluster.h"

namespace riffle::cluster {

class NeighbourFlow {
 public:
  // The cluster's profile must have a neighbour; it must outlive the flow. As with the cluster, the
  // calling thread must live as long as the object.
  static Result<std::unique_ptr<NeighbourFlow>> start(const Cluster& cluster);
  ~NeighbourFlow();
  NeighbourFlow(const NeighbourFlow&) = delete;

 private:
  NeighbourFlow() = default;
  std::vector<pid_t> processes_;
};

}  // namespace riffle::cluster
