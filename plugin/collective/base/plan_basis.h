// What node 0 planned on when the communicator connected; replanning intervals go on from there.
#pragma once

#include <cstdint>

#include "topology/fabric/fabric.h"
#include "topology/plan/planner.h"

namespace riffle {

struct PlanBasis {
  Fabric fabric;
  bool is_nominal = true;  // the rates were neither measured nor given: only their ratios mean much
  std::int64_t message_ns = kMessageNs, small_message_ns = kSmallMessageNs;  // PlanOptions
  bool share_processors = false;  // PlanOptions; false after a loss
  // This communicator has probed all pairs of its nodes, which tells slow nodes from nodes behind a
  // slow uplink. Not known after a loss.
  bool has_seen_pairs = false;
  // For planned_bytes, by the plan that was chosen; 0 where rates are nominal.
  double predicted_us = 0;
  std::uint64_t planned_bytes = 0;

  // With what is known of prices and rates.
  void complete(PlanOptions* options) const {
    options->message_ns = message_ns;
    options->small_message_ns = small_message_ns;
    options->has_nominal_rates = is_nominal;
    options->share_processors = share_processors;
  }
};

}  // namespace riffle
