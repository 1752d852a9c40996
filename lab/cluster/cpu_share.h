// Nodes with little processor: one control group per such node, with a quota of processor time
// (cgroup v1 cpu.cfs_quota_us or v2 cpu.max) in every period of 20 ms. Needs the right to make
// groups, which is that of root outside of most containers.
//
// Groups have names in the file system. The namespaces' keeper makes them and removes them, so that
// they do not outlive their owner either.
#pragma once

#include <string>
#include <vector>

#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

class CpuShares {
 public:
  // Where the groups will be; none where no node has a cpu_percent.
  static Result<CpuShares> plan(const Profile& profile);

  Status make() const;
  // Ends the processes that still are in them; waits up to two seconds for that.
  void remove() const;
  // The calling process becomes one of that node.
  Status enter(int node) const;
  // A process enters by writing its id there; empty: the node has no group.
  std::string procs_file(int node) const;

 private:
  std::string folder_;  // of all groups
  bool v2_ = false;
  std::vector<int> cpu_percent_;  // per node; 0: no group

  std::string group_of(std::size_t node) const;
  template <class F>
  void each_group(F f) const {
    for (std::size_t n = 0; n < cpu_percent_.size(); ++n) {
      if (cpu_percent_[n] != 0) f(n);
    }
  }
};

}  // namespace riffle::cluster
