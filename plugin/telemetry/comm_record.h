// The lines that one communicator writes into the record (docs/commands.md, "The record"):
//
//   comm     the nodes that take part; stands in front of every file
//   plan     the plan in force from a chunk on, why, and on the node that planned the fabric it was
//            made for and its bound for 1 MiB; the last one stands in front of every file
//   mode     the mode of all-reduces from a call on, and why (node 0, where RIFFLE_SYNC asks for
//            one); shadow_sync's rule
//   sample    counters since connect: operations by size, every link, which node groups waited for
//   loss     nodes that were lost while the others went on: which, why, how many are left
//   failed   why connect failed or the communicator broke
//
// Threads: the communicator's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/telemetry/comm_counters.h"
#include "plugin/telemetry/recorder.h"
#include "topology/fabric/fabric.h"

namespace riffle {

// What a failed() begins with where nothing is wrong but all-reduces fall back to NCCL.
inline constexpr char kFallback[] = "all-reduces stay with NCCL: ";

// One peer's link as the sample shows it; totals since connect.
struct LinkSample {
  int peer = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;  // all frames, with their headers
  // The kernel had unacknowledged data to send, on the busiest of the streams.
  std::uint64_t busy_us = 0;
  std::uint64_t retransmits = 0;  // segments
  std::uint32_t rtt_us = 0;       // smoothed, smallest of the streams
};

struct PlanRecord {
  std::uint64_t from_chunk = 0;
  std::string cause;   // "connect", or what changed
  std::string reason;  // the planner's sentence
  std::string name;    // of the plan
  std::uint64_t digest = 0;
  const Fabric* fabric = nullptr;   // what it was planned for, where that is known
  bool is_nominal = false;          // ... in rates that were neither measured nor given
  std::string trigger = "connect";  // or kRates, kTrial, kReturn of ReplanEvent, in words
  double predicted_us = 0;  // of predicted_bytes; 0: rates are nominal, or another node knows
  std::uint64_t predicted_bytes = 0;
};

struct ModeRecord {
  std::string mode;  // "exact", "ds_sync", ...
  std::uint64_t from_call = 0;
  std::string cause;
  std::string rule;  // of shadow_sync, with its numbers; empty for the other modes
};

// Nodes that were lost, and survived (docs/surviving-losses.md).
struct LossRecord {
  struct Node {
    int rank = 0;
    std::string why;
  };
  std::vector<Node> lost;  // since the last record of a loss
  int left = 0;            // nodes that go on
  // From when this node noticed until its work went on.
  double recovery_ms = 0;
};

// Calls of relaxed modes so far, where one is wanted (docs/policies.md).
struct RelaxedTotals {
  std::uint64_t calls = 0, full_calls = 0;
  // What fell back, by reason: not certain which gradients, digests in a group that do not match,
  // gradients that are not finite, modes that ended as the calls changed.
  std::uint64_t doubts = 0, mismatches = 0, not_finite = 0, deviations = 0;
  // shadow_sync, counted per call: rounds begun, those that a call had to wait for, those whose
  // correction was added, and the sync gap of these in steps, from the snapshot to the call that
  // its correction was added to: of all together, and the longest.
  std::uint64_t rounds = 0, waits = 0, corrections = 0, gap_steps = 0, longest_gap = 0;
  // sparse: chunks, those of them that were done again densely, their elements, bytes sent, and
  // calls that took a residual along into an exact sum after the mode had ended.
  std::uint64_t sparse_chunks = 0, redone = 0, sparse_elements = 0, sparse_bytes = 0, brought = 0;
  // ... time of the progress thread for them, and time in which any was under way.
  std::uint64_t sparse_work_us = 0, sparse_span_us = 0;
};

class CommRecord {
 public:
  // Null where nothing is recorded.
  static std::unique_ptr<CommRecord> begin(const RecordOptions& options, std::uint64_t comm_id,
                                           int rank, int size);
  CommRecord(std::shared_ptr<Recorder> recorder, std::uint64_t comm_id, int rank, int size);
  ~CommRecord();

  // `hosts` by rank, as the fabric or the machines name them.
  void connected(const std::vector<std::string>& hosts);
  void planned(const PlanRecord& plan);
  void failed(const std::string& why);
  void mode_changed(const ModeRecord& mode);
  void survived(const LossRecord& loss);
  // `relaxed`: null where no such mode is wanted.
  void sample(std::uint64_t now_ns, const std::vector<LinkSample>& links,
              const RelaxedTotals* relaxed = nullptr);
  void flush() { recorder_->flush(); }

  CommCounters& counters() { return counters_; }
  // When the next sample is due, so that samples stay below a few kB/s however many nodes there
  // are.
  std::uint64_t sample_interval_ns() const { return interval_ns_; }

 private:
  class Line;

  std::shared_ptr<Recorder> recorder_;
  const std::string key_;
  const int rank_, size_;
  CommCounters counters_;
  std::uint64_t interval_ns_;
};

}  // namespace riffle
