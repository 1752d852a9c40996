// One host's part in `riffle probe`: the survey that the first communicator of a job makes, with
// the same session over the same TCP mesh, so that it finds what a job would find. All nodes then
// fall back to NCCL: no plan, no collective.
//
// Threads: the calls come from one thread; the work happens on a reactor thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/base/handle.h"
#include "tools/probe/findings.h"

namespace riffle::tools {

// How this host calls itself, and how a fabric file finds it: RIFFLE_NODE_NAME, else the host name.
std::string own_node_name();

class Measurement {
 public:
  // Listens on the device that NCCL would use first.
  static Result<std::unique_ptr<Measurement>> open();
  virtual ~Measurement() = default;  // in the middle of it, too

  // For the other hosts.
  virtual Handle handle() const = 0;
  // Once: joins the hosts, whose handles come in the same order everywhere; ours is handles[rank].
  virtual void start(std::vector<HandleContent> handles, int rank, int timeout_ms) = 0;
  // Becomes readable when the outcome is there, at the latest about half a second after timeout_ms.
  virtual int over_fd() const = 0;
  // Precondition: over_fd() is readable. What was found, on node 0; elsewhere nothing.
  virtual Result<std::optional<ProbeFindings>> outcome() = 0;
};

}  // namespace riffle::tools
