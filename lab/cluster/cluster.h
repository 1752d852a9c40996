// An emulated cluster: one network and one UTS namespace per node on this machine, joined by shaped
// links, with its profile's background flows. It lives as long as the object; see namespaces.h for
// what happens when the process dies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lab/cluster/background.h"
#include "lab/cluster/cpu_share.h"
#include "lab/cluster/namespaces.h"
#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

// What a node's interfaces have carried since they were made, with Ethernet headers.
struct WireBytes {
  std::int64_t sent = 0;
  std::int64_t received = 0;
};

class Cluster {
 public:
  // The calling thread must outlive the cluster (namespaces.h).
  static Result<std::unique_ptr<Cluster>> create(const Profile& profile);

  const Profile& profile() const { return profile_; }
  int size() const { return profile_.size(); }
  // In a forked child of one thread: become a process of that node.
  Status enter(int node) const;
  const std::vector<pid_t>& holders() const { return namespaces_->holders(); }
  const CpuShares& cpu_shares() const { return cpu_shares_; }
  bool in_user_namespace() const { return namespaces_->in_user_namespace(); }
  // run_command (command.h) as a process of that node.
  Result<std::string> run(int node, const std::vector<std::string>& argv, int deadline_ms) const;
  Result<WireBytes> wire_bytes(int node) const;

 private:
  Cluster(Profile profile, CpuShares cpu_shares, std::unique_ptr<Namespaces> namespaces)
      : profile_(std::move(profile)),
        cpu_shares_(std::move(cpu_shares)),
        namespaces_(std::move(namespaces)) {}

  Profile profile_;
  CpuShares cpu_shares_;
  std::unique_ptr<Namespaces> namespaces_;
  BackgroundTraffic background_;
};

}  // namespace riffle::cluster
