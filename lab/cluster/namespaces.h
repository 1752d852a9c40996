// Namespaces that close_unconfirmed with their owner: a keeper process holds the switch's network
// namespace, one holder process per node holds the node's network and UTS namespace. Nothing has a
// name in the file system, so nothing can be left behind: when the owner dies, in whatever way, the
// kernel tells the keeper (parent-death signal), the keeper takes the holders with it, and
// namespaces without processes are gone together with their devices.
//
// Where the caller may not make network namespaces, all of it happens inside a user namespace of
// its own, if the kernel allows these.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::cluster {

class Namespaces {
 public:
  // In the switch's namespace, once all holders exist: make the devices and move them to the nodes.
  using SetUpSwitch = std::function<Status(const std::vector<pid_t>& holders)>;
  // In a node's namespace, after that.
  using SetUpNode = std::function<Status(int node)>;

  // In the keeper, when all namespaces are gone: what else of them is left.
  using CleanUp = std::function<void()>;

  // The thread that calls it must live as long as the object: its end counts as the owner's death.
  static Result<std::unique_ptr<Namespaces>> create(
      int nodes, const SetUpSwitch& set_up_switch, const SetUpNode& set_up_node,
      const CleanUp& clean_up = [] {});
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;

  const std::vector<pid_t>& holders() const { return holders_; }
  bool in_user_namespace() const { return user_; }
  // Moves the calling process, which must have one thread, into a node's namespaces. Keeps its
  // parent-death signal.
  Status enter(int node) const;

 private:
  Namespaces(pid_t keeper, int socket) : keeper_(keeper), socket_(socket) {}

  pid_t keeper_;
  int socket_;  // its end tells the keeper to go
  std::vector<pid_t> holders_;
  bool user_ = false;
};

// ok where create() can work; else the reason and the remedy.
Status namespaces_allowed();

}  // namespace riffle::cluster
