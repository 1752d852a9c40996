// ReplanEvent: what node 0 learned and decided at the end of a replanning interval, for the
// log, the record and the demo. A value type; rates are link rates in kbit/s as in Fabric.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/probe/passive.h"

namespace riffle {

struct ReplanEvent {
  enum class Kind {
    kReport,      // rates came in; the plan stays
    kPlanChange,  // all nodes agreed on another plan
    kMode,        // all nodes agreed on another mode, or left the former one: `mode`, `cause`
    kGivenUp,     // a change was wanted, but a node could not take it: `cause` says which and why
  };

  // What a kPlanChange or kGivenUp came from.
  enum class Trigger {
    kRates,   // the network has changed
    kTrial,   // the model of the network is in doubt: plans are tried on all-reduces
    kReturn,  // all-reduces took longer since the last change, which is taken back
  };

  Kind kind = Kind::kReport;
  std::uint64_t interval = 0;     // counts from 1
  std::uint64_t collectives = 0;  // counted on node 0 when the replanning interval ended
  std::uint64_t time_ns = 0;      // of the mesh's clock (monotonic)
  std::vector<probe::PassiveReport> reports;  // kReport: by rank, what each node measured
  Fabric fabric;                              // what is believed of the network now
  bool is_nominal = false;                    // its rates were neither measured nor given
  // kPlanChange, kGivenUp.
  Trigger trigger = Trigger::kRates;
  std::string cause;          // "node 3 (h3) now sends 98 Mbit/s, was 400"
  std::string plan;           // name of the new plan
  std::string reason;         // the planner's sentence
  std::uint64_t digest = 0;   // of the new plan
  double time_us = 0;         // predicted for planned_bytes with the new plan
  double former_time_us = 0;  // ... and with the plan that it replaces, on the same rates
  std::uint64_t planned_bytes = 0;
  std::uint64_t generation = 0;
  std::uint64_t first_seq = 0;  // chunk (kMode: call) from which on all nodes use it
  std::string mode;             // kMode: "exact", "ds_sync", ...
};

// Called on node 0's progress thread: be quick, do not block.
class ReplanObserver {
 public:
  virtual ~ReplanObserver() = default;
  virtual void on_replan(const ReplanEvent& event) = 0;
};

}  // namespace riffle
