// An emulated cluster: one network and one UTS namespace per node on this machine, joined by shaped
// links. It lives as long as the object; see namespaces.h for what happens when the process dies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lab/cluster/namespaces.h"
#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

// What a node's interface has carried since it was made, with Ethernet headers.
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
  Status enter(int node) const { return namespaces_->enter(node); }
  const std::vector<pid_t>& holders() const { return namespaces_->holders(); }
  bool in_user_namespace() const { return namespaces_->in_user_namespace(); }
  // run_command (command.h) as a process of that node.
  Result<std::string> run(int node, const std::vector<std::string>& argv, int deadline_ms) const;
  Result<WireBytes> wire_bytes(int node) const;

 private:
  Cluster(Profile profile, std::unique_ptr<Namespaces> namespaces)
      : profile_(std::move(profile)), namespaces_(std::move(namespaces)) {}

  Profile profile_;
  std::unique_ptr<Namespaces> namespaces_;
};

}  // namespace riffle::cluster
