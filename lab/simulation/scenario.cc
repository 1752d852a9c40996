#include "lab/simulation/scenario.h"

#include <algorithm>

#include "topology/base/printed.h"
#include "topology/plan/planner.h"

namespace riffle::sim {
namespace {

const char* name_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kKill:
      return "kill node";
    case Fault::Kind::kStop:
      return "stop node";
    case Fault::Kind::kPause:
      return "pause node";
    case Fault::Kind::kBreak:
      return "break the connection of node";
    case Fault::Kind::kUnplug:
      return "unplug node";
    case Fault::Kind::kNodeRate:
      return "slow down node";
    case Fault::Kind::kRackRate:
      return "slow down the uplink of rack";
    case Fault::Kind::kCutRack:
      return "cut off rack";
  }
  return "";
}

}  // namespace

bool Scenario::is_survivable() const {
  return std::all_of(faults.begin(), faults.end(), [this](const Fault& f) {
    return f.kind == Fault::Kind::kNodeRate || f.kind == Fault::Kind::kRackRate ||
           (f.kind == Fault::Kind::kPause && f.length_ns <= network.peer_timeout_ns / 2);
  });
}

std::string describe(const Fault& f) {
  std::string text = name_of(f.kind) + (" " + std::to_string(f.node));
  if (f.kind == Fault::Kind::kBreak) text += " to node " + std::to_string(f.other);
  if (f.kind == Fault::Kind::kNodeRate || f.kind == Fault::Kind::kRackRate) {
    text += printed(" to %.1f %%", 100 * f.factor);
  }
  const bool passes = f.kind == Fault::Kind::kPause || f.kind == Fault::Kind::kNodeRate ||
                      f.kind == Fault::Kind::kRackRate;
  if (passes) text += printed(" for %.3f ms", static_cast<double>(f.length_ns) / 1e6);
  return text;
}

Scenario surviving_job(const Fabric& fabric, std::uint64_t seed, int calls, std::size_t count) {
  Scenario s;
  s.seed = s.network.seed = seed;
  s.fabric = fabric;
  s.network.jitter_ns = 100'000;
  s.network.poisons = true;
  s.network.peer_timeout_ns = s.session.peer_timeout_ns = 3'000'000'000;
  s.session.connect_timeout_ns = 5'000'000'000;
  s.session.survivors.is_on = true;
  s.session.engine.chunk_bytes = 64 << 10;
  s.session.engine.piece_bytes = 8 << 10;
  s.session.engine.max_chunks = 16;
  s.session.engine.max_operations = 8;
  s.session.engine.has_blocks = false;
  s.outstanding = 4;
  s.plans = plan(s.fabric, 1 << 20, {})->plans;
  for (int i = 0; i < calls; ++i) {
    s.calls.push_back({.count = count, .in_place = i % 2 == 0, .is_rounded = i % 3 == 0});
  }
  return s;
}

std::string describe(const Scenario& s) {
  const EngineOptions& e = s.session.engine;
  std::string text =
      "seed " + std::to_string(s.seed) + ": " + std::to_string(s.size()) + " nodes in " +
      std::to_string(s.fabric.racks.size()) + " racks, plan \"" + s.plans.name + "\" with " +
      std::to_string(s.plans.lanes.size()) + " lanes, " + std::to_string(s.calls.size()) +
      " calls of up to " + std::to_string(s.outstanding) + " at once, chunks of " +
      std::to_string(e.chunk_bytes) + " in pieces of " + std::to_string(e.piece_bytes) + " bytes\n";
  if (s.session.replan.collectives > 0) {
    text += "  a replanning interval every " + std::to_string(s.session.replan.collectives) +
            " calls\n";
  }
  if (s.session.survivors.is_on) {
    text += s.session.survivors.rescales ? "  goes on after losses\n"
                                         : "  goes on after losses, not scaled\n";
  }
  if (s.probes) text += "  connect probes\n";
  for (const Fault& f : s.faults) {
    const double ms = static_cast<double>(f.when_ns) / 1e6;
    text += f.is_in_switch ? printed("  %.3f ms into a change of the plan: ", ms)
                           : printed("  at %.3f ms: ", ms);
    text += describe(f) + "\n";
  }
  return text;
}

}  // namespace riffle::sim
