// Job: the production sessions of all nodes on a simulated network: connect, with probing if
// wanted, then all-reduces one after the other while replanning intervals watch and the network
// changes. Numbers do not travel (DryCalls), nor does what probes send; every message of the
// protocol does.
//
// Rates of the network count as payload rates (sim_network.h); what probing and replanning
// intervals believe are link rates, as in production: payload times 1514/1448.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/collective/session.h"
#include "plugin/transport/sim/sim_network.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/planner.h"

namespace riffle::sim {

struct JobOptions {
  SimOptions network = {.tick_ns = 0};  // 0: fits the rates
  SessionOptions session;       // its replanning intervals: how often; background is the job's own
  bool probes = false;          // else the network's rates are known, as from a file
  std::optional<Fabric> told;   // ... that tells of another network
  bool has_seen_pairs = false;  // what is told was probed (PlanBasis)
  std::vector<int> racks;  // with probes: who stands where, if that is known; empty: to be found
  std::string
      fallback_reason;  // not empty: why the verdict is to leave the work to NCCL; nodes then close
  std::uint64_t call_bytes = 1 << 20;
  int outstanding = 8;
  std::uint64_t planning_ns = 20'000'000;  // planning, and preparing a plan, take so long
};

// What probing sent.
struct ProbeTraffic {
  std::uint64_t flow_bytes = 0;     // payload of what was measured
  std::uint64_t message_bytes = 0;  // orders and reports with their headers
  std::uint64_t answers = 0;        // frames without payload
  std::uint64_t pairs = 0;          // ordered pairs that a flow ran between
};

class Job {
 public:
  Job(const Fabric& fabric, const JobOptions& options);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // All nodes start at once. The error is connect's; once.
  Status connect();
  // One all-reduce, which all nodes begin now; its time until the last has finished.
  Result<double> all_reduce_us(std::uint64_t bytes);

  SimNetwork& network() { return network_; }
  std::uint64_t connect_ns() const { return connect_ns_; }
  const ProbeOutcome& probed() const { return probed_; }
  const ProbeTraffic& traffic() const { return traffic_; }
  const PlanBasis& basis() const { return basis_; }     // that the first plan was made on
  const PlanChoice& choice() const { return choice_; }  // the first plan
  const std::vector<ReplanEvent>& events() const;       // of all replanning intervals so far

 private:
  class Node;
  class Recorder;
  Verdict decide(const std::vector<NodeReport>& reports);
  void saw_probe_frame(int from, int to, const FrameHeader& header);

  const Fabric fabric_;
  const JobOptions options_;
  SimNetwork network_;
  PlanBasis basis_;
  PlanChoice choice_;
  ProbeOutcome probed_;
  Status probe_error_;
  ProbeTraffic traffic_;
  std::vector<bool> met_;  // [from * nodes + to]
  std::uint64_t connect_ns_ = 0, collectives_ = 0;
  std::unique_ptr<Recorder> recorder_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace riffle::sim
