// The planner's study: random fabrics of a few classes, and what the planner's choice takes on them
// in the simulator. Shared by bench/planner_study.cc and the tests that keep its results.
//
// A fabric follows from its class and seed alone, on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lab/simulation/simulate.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/planner.h"

namespace riffle::sim {

enum class FabricClass {
  kFlat,         // one rack of 4 to 64 nodes at 1, 1/2, 1/4 or 1/10 of the base rate
  kEvenRacks,    // 2 to 8 racks of 1 to 8 nodes at the base rate; a rack's uplink carries the sum
                 // of its nodes' rates divided by a taper from 1 to 8
  kUnevenRacks,  // likewise with the nodes' rates of kFlat; redrawn while the slowest node alone
                 // sets the bound
  kHalfRate,     // 64 nodes in one rack of which the one numbered seed mod 65 has half the rate;
                 // 64: none has
};
struct FabricClassName {
  FabricClass value;
  const char* name;
};
std::span<const FabricClassName> fabric_classes();

inline constexpr std::int64_t kStudyRateKbps = 10'000'000;

Fabric draw_fabric(FabricClass kind, std::uint64_t seed, std::int64_t base_kbps = kStudyRateKbps);

struct Studied {
  std::string plan;
  double bound_us = 0, predicted_us = 0, simulated_us = 0;
  double planning_s = 0, simulating_s = 0;  // elapsed on this machine
  double x() const { return simulated_us / bound_us; }
  double prediction() const { return predicted_us / simulated_us; }
};

// Plans and simulates, with the options as given: by default the planner counts some processor time
// per message where the simulator's processors are infinitely fast.
Result<Studied> study(const Fabric& fabric, std::uint64_t bytes, const PlanOptions& planner,
                      const SimulateOptions& simulator);

}  // namespace riffle::sim
