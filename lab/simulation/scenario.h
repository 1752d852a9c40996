// Scenario: a network, a plan, collectives and faults, all drawn from one number, so that the
// number is all it takes to see a run again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/collective/session.h"
#include "plugin/kernels/types.h"
#include "plugin/transport/sim/sim_options.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/group_plan.h"

namespace riffle::sim {

struct Fault {
  enum class Kind {
    kKill,      // node: its process dies
    kStop,      // node: it hangs for good
    kPause,     // node: it hangs for `length_ns`
    kBreak,     // the connection between node and other breaks
    kUnplug,    // node: its connections to all others break
    kNodeRate,  // node: its rates are multiplied by `factor` for `length_ns`
    kRackRate,  // rack `node`: likewise
    kCutRack,   // rack `node`: nothing passes between it and the others any more; all live on
  };
  Kind kind = Kind::kKill;
  std::uint64_t when_ns = 0;
  int node = 0, other = 0;
  std::uint64_t length_ns = 0;
  double factor = 1;
  // when_ns counts from the moment that the first node hears of the next change of the plan.
  bool is_in_switch = false;
};

// One all-reduce.
struct Call {
  DataType type = DataType::kFloat32;
  std::uint64_t count = 0;
  bool in_place = true;
  bool is_rounded = false;  // values whose sums are rounded; else small integers
};

struct Scenario {
  std::uint64_t seed = 0;
  Fabric fabric;
  SimOptions network;
  SessionOptions session;
  PlanSet plans;
  std::vector<Call> calls;
  int outstanding = 1;
  std::uint64_t most_start_ns = 0;               // nodes start within this time
  std::uint64_t most_think_ns = 0;               // between a completion and the next post
  std::uint64_t most_pause_before_close_ns = 0;  // between the last completion and close
  bool probes = false;                           // while connecting
  bool exits_on_error = false;                   // a process that has an error ends at once
  // Calls have a length that some nodes, or none, do not know (collective/engine/lengths.h).
  bool has_lengths = false;
  // Replanning, if session.replan is on: planning, and preparing a plan, take up to this.
  std::uint64_t most_planning_ns = 0;
  std::vector<Fault> faults;     // in order of time
  std::vector<SpanLog*> traces;  // by node, what calls are traced into; empty: nothing is traced

  int size() const { return fabric.size(); }
  // True if every call must succeed: nothing in it ends a node or a connection.
  bool is_survivable() const;
};

Scenario draw_scenario(std::uint64_t seed);
// The same with RIFFLE_ON_LOSS=continue, and at least one node that is lost or thinks so.
Scenario draw_loss_scenario(std::uint64_t seed);

// A job that goes on after losses and does nothing special: its network, plans for calls of 1 MiB,
// room for 8 operations, and so many calls of `count` float32 elements, every other one in place.
Scenario surviving_job(const Fabric& fabric, std::uint64_t seed, int calls, std::size_t count);

// A few human-readable lines.
std::string describe(const Scenario& scenario);
std::string describe(const Fault& fault);

}  // namespace riffle::sim
