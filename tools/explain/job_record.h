// What the record of a job says (plugin/telemetry/comm_record.h), as plain data; record_lines.h
// reads it from files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/fabric/fabric.h"

namespace riffle::tools {

struct SizeTotals {
  std::uint64_t count = 0, bytes = 0, total_us = 0, max_us = 0;
  std::map<std::uint64_t, std::uint64_t> times;  // begin of the bucket in us -> operations
  // The upper end of the bucket in which the quantile lies.
  double quantile_us(double q) const;
};

struct LinkTotals {
  std::uint64_t out = 0, in = 0, busy_us = 0, retransmits = 0, last = 0;
};

// Calls of relaxed modes, and those that fell back, by reason.
struct RelaxedUse {
  std::uint64_t calls = 0, full_calls = 0, doubts = 0, mismatches = 0, not_finite = 0,
                deviations = 0;
  // shadow_sync: see RelaxedTotals in plugin/telemetry/comm_record.h.
  std::uint64_t rounds = 0, waits = 0, corrections = 0, gap_steps = 0, longest_gap = 0;
  // sparse: likewise.
  std::uint64_t sparse_chunks = 0, redone = 0, sparse_elements = 0, sparse_bytes = 0, brought = 0;
  std::uint64_t sparse_work_us = 0, sparse_span_us = 0;
  // The mean number of steps that a correction came behind its snapshot; 0 where there was none.
  double mean_gap() const;
  void add(const RelaxedUse& other);
};

struct Sample {
  double t = 0;  // Unix time, s
  std::uint64_t active_us = 0;
  std::uint64_t bursts = 0;                   // from idle to idle; 0: an earlier version wrote it
  std::map<std::uint64_t, SizeTotals> sizes;  // by the class's upper end in bytes
  std::map<int, LinkTotals> links;            // by peer
  std::uint64_t last_self = 0;
  std::uint64_t others = 0;  // operations that are no all-reduces
  std::optional<RelaxedUse> relaxed;
};

// What happened after `base`; longest times and relaxed calls stay those since connect.
Sample since(const Sample& base, Sample sample);
std::uint64_t bytes_of(const Sample& sample);  // all-reduced

struct PlanEvent {
  double t = 0;
  std::uint64_t from_chunk = 0;
  std::string cause, reason, name, digest;
  std::optional<Fabric> fabric;  // valid
  bool is_nominal = false;       // its rates were neither measured nor given
  std::string trigger;           // "connect", "rates", "trial", "return"
  double predicted_us = 0;       // of predicted_bytes; 0: not known
  std::uint64_t predicted_bytes = 0;
};

struct ModeEvent {
  double t = 0;
  std::uint64_t from_call = 0;
  std::string mode, cause;
  std::string rule;  // of shadow_sync; empty: there is none, or an earlier version wrote it
};

// Nodes that were lost, and survived by the one that tells.
struct LossEvent {
  double t = 0;
  std::vector<std::pair<int, std::string>> lost;  // rank, why
  int left = 0;                                   // nodes that go on
  double recovery_ms = 0;                         // from when it was noticed
};

struct NodeRecord {
  double connected_t = 0;
  std::vector<Sample> samples;  // totals, by time
  std::vector<PlanEvent> plans;
  std::vector<ModeEvent> modes;
  std::vector<LossEvent> losses;
  std::vector<std::string> failures;
};

struct CommRecords {
  std::string slurm_job_id;         // empty: none
  std::string version;              // of Riffle, as the record has it; empty: it does not say
  std::vector<std::string> hosts;   // by rank
  std::map<int, NodeRecord> nodes;  // by rank: those whose record was given
  int size() const { return static_cast<int>(hosts.size()); }
};

// By time, of the node that tells most of them: the one that knows the fabric, else the lowest that
// has any.
const std::vector<PlanEvent>& plans_of(const CommRecords& comm);

// Of a communicator that never connected, as one of its nodes tells it.
struct NoConnect {
  double t = 0;
  std::string comm, slurm_job_id, why;
};

struct JobRecord {
  std::map<std::string, CommRecords> comms;  // by key; only those that connected
  std::vector<NoConnect> failures;           // by time
  std::vector<std::string> notes;            // what could not be read
};

}  // namespace riffle::tools
