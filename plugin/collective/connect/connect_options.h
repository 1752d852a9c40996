// What the knobs say about connecting: which network it is, how plans for it are made, and when
// all-reduces are left to NCCL.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/collective/base/sync_mode.h"
#include "topology/plan/planner.h"

namespace riffle {

// The size that plans are compared at.
inline constexpr std::uint64_t kPlannedBytes = 32u << 20;

enum class Wish : std::uint8_t { kAuto, kOn, kOff };

struct ConnectOptions {
  Wish collnet = Wish::kAuto;     // RIFFLE_COLLNET
  Wish probe = Wish::kAuto;       // RIFFLE_PROBE
  bool is_deterministic = false;  // RIFFLE_DETERMINISTIC
  bool survives_losses = false;   // RIFFLE_ON_LOSS=continue
  // Calls move only their valid elements, where NCCL tells this process which those are.
  bool moves_valid_elements = false;
  std::string node_name;    // empty: the host's
  std::string rack;         // the name of this node's; empty: not known
  std::string knobs;        // that all nodes must have alike (decision_knobs())
  std::string fabric;       // file with the network's rates; empty: none
  std::string fabric_save;  // file that node 0 writes what probing found to; empty: none
  std::string topology;     // file with the racks; empty: the Slurm job's, "none": none
  PlanOptions plan;
  int threads = 1;  // progress threads that share the messages of one communicator
  SyncSettings sync;
};

}  // namespace riffle
