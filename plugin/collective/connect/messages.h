// What nodes tell each other while they connect. Encoded little-endian and self-delimiting;
// decoding checks every length and never reads past the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/collective/base/machine_speed.h"
#include "topology/base/status.h"

namespace riffle {

// One node's facts, gathered at node 0.
struct NodeReport {
  std::int32_t rank = 0;
  std::string host;                  // for messages
  std::vector<std::string> aliases;  // names it may have in a fabric file: host name, addresses
  std::string version;               // of the plugin
  std::string knobs;                 // decision_knobs()
  std::string problem;               // not empty: this node cannot take part, and why
  std::int64_t rate_kbps = 0;        // of its device
  bool knows_rate = false;           // rate_kbps is what hardware says, not a guess
  MachineSpeed speed;                // measured
  MachineShare share;                // what else is on its machine
  std::string rack;                  // its name (RIFFLE_RACK); empty: not told
  std::string network;               // subnet of its first address, "10.1.2.0/24"; empty: unknown
  bool knows_lengths = false;  // NCCL tells it what its calls are (plugin/identity/identity.h)
};

// Node 0's decision for all nodes.
struct Verdict {
  std::string problem;              // not empty: no node connects, and why
  std::string fallback_reason;      // not empty: nothing is wrong, but NCCL carries all-reduces
  std::string reason;               // of the plan, for the log
  std::vector<std::string> hosts;   // of all nodes in rank order, for messages
  std::vector<std::uint8_t> plans;  // encoded PlanSet
  std::uint64_t digest = 0;         // of the plans, as node 0 sees them
  bool knows_lengths = false;       // all do: only valid elements are moved (lengths.h)
  std::string network;              // what probing found, as a fabric file; empty: nothing
};

// The agreement at the end: does this subtree (upwards), do all (downwards) have every link?
struct Agreement {
  std::string problem;
};

std::vector<std::uint8_t> encode(const std::vector<NodeReport>& reports);
std::vector<std::uint8_t> encode(const Verdict& verdict);
std::vector<std::uint8_t> encode(const Agreement& agreement);
Result<std::vector<NodeReport>> decode_reports(const std::vector<std::uint8_t>& bytes);
Result<Verdict> decode_verdict(const std::vector<std::uint8_t>& bytes);
Result<Agreement> decode_agreement(const std::vector<std::uint8_t>& bytes);

}  // namespace riffle
