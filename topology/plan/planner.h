// The planner: from a fabric and a size to the fastest known set of groups. Pure and deterministic:
// the same integer rates in, the same answer on every machine. No threads, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/plan/group_plan.h"

namespace riffle {

// Time that a node's processor spends on a frame it sends or receives, beside its bytes, where it
// was not measured: riffle_message_bench shows 100 to 400 ns where frames wait for one peer and 500
// to 1300 where each leaves alone; the engine's own work comes on top.
inline constexpr std::int64_t kMessageNs = 2000;
// Of a small sum, where threads sleep and are woken between its messages. Assumed.
inline constexpr std::int64_t kSmallMessageNs = 5000;

struct PlanOptions {
  int max_lanes = 8;       // shuffled variants to return at most
  std::uint64_t seed = 1;  // of the shuffles
  std::string only;        // force one candidate by name ("ring", "direct", ...); empty = best
  std::string exactly;     // ... or by its full name ("racks x rails, one centre")
  std::int64_t message_ns = kMessageNs;
  // The same for small sums, of which it is most of the time: more where nodes share processors.
  std::int64_t small_message_ns = kSmallMessageNs;
  bool only_if_it_applies = false;  // where `only` or `exactly` does not, the best of all
  bool has_nominal_rates = false;   // only ratios of the rates mean much: PlanSet::busy_bytes is 0
  // Nodes are one machine with far too few processors: what they do sets the time, not links. Rates
  // then change nothing.
  bool share_processors = false;
};

struct Candidate {
  std::string name;
  double time_us = 0;  // predicted
  std::string limit;   // the resource that sets the time, e.g. "uplink of rack 1"
};

struct PlanChoice {
  PlanSet plans;
  double time_us = 0;                 // predicted for `bytes`
  double bound_us = 0;                // least time of any exact algorithm (architecture: Bounds)
  std::string reason;                 // a sentence or two; the limiting link comes first
  std::vector<Candidate> candidates;  // all considered, the chosen one first
};

// Least time in microseconds that any exact all-reduce of `bytes` bytes can take on the fabric.
double bound_us(const Fabric& fabric, std::uint64_t bytes);

// Predicted time of one plan set (steady state: load over capacity of every link, plus latency).
Candidate predict(const Fabric& fabric, const PlanSet& plans, std::uint64_t bytes,
                  std::int64_t message_ns = kMessageNs);

// How long each link carries something in all, the busiest first. Links without load are left out.
struct LinkTime {
  std::string link;  // e.g. "sending of node h3", "uplink of rack r1"
  double time_us = 0;
  std::int64_t rate_kbps = 0;
};
std::vector<LinkTime> link_times(const Fabric& fabric, const PlanSet& plans, std::uint64_t bytes);

// The fastest plan for sums of `bytes` bytes. If that is more than kMostSmallBytes, no kind of plan
// is forced and another one is predicted to take small sums, of kSmallPlannedBytes, at least
// kSmallGain times as fast, they get that (PlanSet::small).
inline constexpr std::uint64_t kSmallPlannedBytes = 16 << 10;
inline constexpr double kSmallGain = 1.1;
Result<PlanChoice> plan(const Fabric& fabric, std::uint64_t bytes, const PlanOptions& options);

}  // namespace riffle
