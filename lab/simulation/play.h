// Plays a scenario and checks what the communicator promises:
//
// * Every node that lives ends: each call succeeds or fails, no node waits when nothing is under
// way.
// * A call that succeeds has the exact sum (rounded types: within the limit), with the same bits on
//   every node, whatever happens afterwards.
// * Without a fault that ends a node or a connection, everything succeeds and no node reports an
//   error.
// * With one, every node that reports an error does so once, within the peer timeout and a second,
//   and blames a node that was concerned (unless packets got lost or links were slowed down: news
//   may then come after its teller has gone).
// * Where the survivors of a loss go on: results are sums over all nodes or over those left, with
//   the same bits everywhere; no two sides go on; while the nodes that no fault concerned are more
//   than half, they all finish everything.
// * Queues are bounded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/simulation/scenario.h"
#include "plugin/transport/sim/sim_network.h"

namespace riffle::sim {

struct NodeEnd {
  bool is_alive = true;  // neither killed nor stopped for good
  std::string error;     // its session's or connect's; empty: none
  std::size_t finished = 0;
  std::vector<int> side;  // those it worked with at last
};

struct Outcome {
  std::string broken;  // the first promise broken; empty if all were kept
  int failed_nodes = 0;
  std::uint64_t calls = 0;        // that succeeded, over all nodes
  int plan_changes = 0;           // agreed on by all
  int plan_changes_given_up = 0;  // begun, but a node could not take it or left
  int losses_survived = 0;        // by the node that saw most
  int went_on = 0;                // nodes that finished everything after a loss
  int faults_in_switches = 0;     // that struck in the middle of a change
  std::uint64_t end_ns = 0;       // virtual
  SimCounters counters;
  std::vector<NodeEnd> nodes;
};

// `trace`, if not empty, gets a line for everything that happens above the network.
Outcome play(const Scenario& scenario,
             const std::function<void(std::uint64_t now_ns, const std::string&)>& trace = {});

}  // namespace riffle::sim
