// A profile's background flows: between two nodes of a cluster at a rate, all the time or on and
// off. They are UDP, which does not give way: what a flow takes of its links does not depend on
// what else they carry, so the rest is what everything else has. Its datagrams are dropped at the
// receiver's socket, for nothing.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

class BackgroundTraffic {
 public:
  // Makes the calling process, a forked child of one thread, one of that node.
  using Enter = std::function<Status(int node)>;

  BackgroundTraffic() = default;
  BackgroundTraffic(const BackgroundTraffic&) = delete;
  ~BackgroundTraffic();
  // The calling thread must live as long as the object.
  Status start(const std::vector<BackgroundFlow>& flows, const Enter& enter);

 private:
  std::vector<pid_t> processes_;
};

}  // namespace riffle::cluster
