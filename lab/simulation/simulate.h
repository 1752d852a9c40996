// How long an all-reduce takes: the production engine on every node of a fabric, in virtual time.
//
// The call pattern is NCCL's: the buffer is cut into calls of at most call_bytes, at most
// `outstanding` of them at once, and a node posts the next one when its oldest is done. Nothing is
// copied or added (Operation::is_dry), so the run costs time per frame, not per byte.
//
// Rates of the fabric count as payload rates: one flow of n bytes alone takes n/rate plus latency.
// Frames add 64 bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/collective/engine/engine.h"
#include "plugin/transport/sim/sim_network.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/group_plan.h"

namespace riffle::sim {

struct SimulateOptions {
  EngineOptions engine;  // has_blocks is ignored: there are none
  // tick_ns 1: exact. 0: chosen: at most a fifth of the latency, and of the bound one part in
  // twenty thousand, beyond 64 nodes fewer, at 1,024 nodes one in 1,250. carries_payload is
  // ignored.
  SimOptions network = {.tick_ns = 0};
  std::uint64_t call_bytes = 1 << 20;
  int outstanding = 8;
  bool traces = false;  // every call, on all nodes
};

// One direction of a node's or rack's link.
struct LinkUse {
  std::string link;  // e.g. "sending of node h3", "uplink of rack r1"
  double bytes = 0;  // with frame headers
  double share = 0;  // of what the link could have carried in the time; 0 if it has no limit
};

struct Simulated {
  double time_us = 0;                  // from the first post until every node has finished
  std::vector<LinkUse> links;          // busiest first
  std::uint64_t most_added_bytes = 0;  // partial sums that one node received, and so adds up
  SimCounters counters;
  // Where calls are traced, by node, in virtual time; and what found no room among them: all nodes
  // together have kMostSpans.
  static constexpr std::size_t kMostSpans = 1 << 21;
  std::vector<std::vector<Span>> spans;
  std::uint64_t dropped_spans = 0;
};

// Fails if the plan cannot be installed or a node reports an error; a deadlock is an internal
// error.
Result<Simulated> simulate(const Fabric& fabric, const PlanSet& plans, std::uint64_t bytes,
                           const SimulateOptions& options = {});

}  // namespace riffle::sim
