// What this process knows of the live network from probing, and when to probe.
//
// The first communicator of a job probes; node 0's verdict carries the result to all processes, and
// whichever of them is node 0 of a further communicator (a split, a second one) uses it as long as
// it is fresh and knows all nodes by name. So the decision is node 0's alone, and the others learn
// of it by the verdict as ever.
//
// Thread safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plugin/collective/connect/connect_options.h"
#include "plugin/collective/connect/messages.h"
#include "plugin/collective/connect/prober.h"
#include "plugin/transport/device/device.h"
#include "topology/fabric/fabric.h"
#include "topology/fabric/racks_file.h"

namespace riffle {

// True if the nodes should probe before node 0 decides: RIFFLE_PROBE allows it, no file knows the
// rates, and the outcome matters. Not in auto: where all nodes are one machine
// (are_one_machine), and with RIFFLE_DETERMINISTIC=1, as two probes never give quite the same plan.
bool wants_probe(const ConnectOptions& options, const std::vector<NodeReport>& reports);

// Logs one line where wants_probe() says no for one reason alone: all nodes are one machine.
void log_one_machine(const ConnectOptions& options, const std::vector<NodeReport>& reports);

// The network as probed before, by the same or other communicators of this process; none if a node
// is unknown, it was too long ago, or RIFFLE_PROBE is not auto.
std::optional<Fabric> remembered_network(const ConnectOptions& options,
                                         const std::vector<NodeReport>& reports);

// Every node, from the verdict: Verdict::network, a fabric file's text; ignored if empty.
void remember_network(const std::string& network);

// Node 0: what a probe found, as a fabric of these nodes. An error, naming a node, if it found
// nothing usable. Nodes are named by host, those of equal host names by what tells them apart, as
// in a fabric file: RIFFLE_NODE_NAME, addresses. `device` is this node's (for the MTU); `racks` are
// those known before, or null: the same ones get their names.
Result<Fabric> fabric_of_probe(const ProbeOutcome& outcome, const std::vector<NodeReport>& reports,
                               const Device& device, const Racks* racks);

// The same for a job: one log line says it in words; none, with a log line, if nothing is usable.
std::optional<Fabric> probed_network(const ConnectOptions& options, const ProbeOutcome& outcome,
                                     const std::vector<NodeReport>& reports, const Device& device,
                                     const Racks* racks);

// For Verdict::network, as load_fabric reads it; empty if the nodes' names do not tell them apart.
std::string network_text(const Fabric& fabric);

}  // namespace riffle
