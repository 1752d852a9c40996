// NetworkDecision: node 0's decision for one communicator, and what it knows of the network by
// then: racks that are known, rates as another communicator probed them, or as this one does.
//
// Threads: the mesh's owner.
#pragma once

#include <optional>
#include <vector>

#include "plugin/collective/base/plan_basis.h"
#include "plugin/collective/connect/connect_options.h"
#include "plugin/collective/connect/messages.h"
#include "plugin/collective/connect/prober.h"
#include "plugin/transport/device/device.h"
#include "topology/fabric/fabric.h"
#include "topology/fabric/racks_file.h"

namespace riffle {

class NetworkDecision {
 public:
  // `device`: this node's. `options` must outlive this.
  NetworkDecision(const ConnectOptions& options, const Device& device)
      : options_(options), device_(device) {}

  // The steps of connect, in this order (SessionHooks).
  // Looks up what is known without probing. True: the network is to be probed.
  bool look_up(const std::vector<NodeReport>& reports, probe::KnownRacks* known);
  bool knows_network(const std::vector<NodeReport>& reports) const;
  void probed(const std::vector<NodeReport>& reports, const ProbeOutcome& outcome);
  Verdict decide(const std::vector<NodeReport>& reports);
  // What was planned for.
  const PlanBasis& basis() const { return basis_; }

 private:
  const Racks* racks() const { return racks_ ? &*racks_ : nullptr; }

  const ConnectOptions& options_;
  const Device device_;            // the listener that tells it goes once there is a mesh
  std::optional<Racks> racks_;     // known without measuring
  std::optional<Fabric> network_;  // as probed
  bool is_probed_here_ = false;
  bool has_seen_pairs_ = false;  // PlanBasis
  PlanBasis basis_;
};

}  // namespace riffle
