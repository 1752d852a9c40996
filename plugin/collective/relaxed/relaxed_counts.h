// What the relaxed calls of one communicator count.
#pragma once

#include <atomic>
#include <cstdint>

#include "plugin/collective/sparse/sparse_work.h"
#include "plugin/telemetry/comm_record.h"

namespace riffle {

// Totals since the communicator began. Any thread reads.
struct RelaxedCounts {
  std::atomic<std::uint64_t> calls{0};       // staged
  std::atomic<std::uint64_t> full_calls{0};  // ... over all nodes
  std::atomic<std::uint64_t> doubts{0};      // kept out as their identity was not certain
  std::atomic<std::uint64_t> mismatches{0};  // kept as the group's digests did not match
  std::atomic<std::uint64_t> not_finite{0};
  std::atomic<std::uint64_t> broken_off{0};   // segments that a loss left as each node's own
  std::atomic<std::uint64_t> deviations{0};   // modes that ended as the calls changed
  std::atomic<std::uint64_t> rounds{0};       // shadow_sync: in the background, per call
  std::atomic<std::uint64_t> waits{0};        // ... that were waited for
  std::atomic<std::uint64_t> corrections{0};  // ... whose result was added to an answer
  std::atomic<std::uint64_t> gap_steps{0};    // ... steps from snapshot to correction, of all
  std::atomic<std::uint64_t> longest_gap{0};  // ... and the most
  // sparse: residuals that went into exact sums, and that found none to go into.
  std::atomic<std::uint64_t> brought{0}, lost{0};
  SparseWork sparse;

  RelaxedTotals totals() const {  // for the record
    return {.calls = calls,
            .full_calls = full_calls,
            .doubts = doubts,
            .mismatches = mismatches,
            .not_finite = not_finite,
            .deviations = deviations,
            .rounds = rounds,
            .waits = waits,
            .corrections = corrections,
            .gap_steps = gap_steps,
            .longest_gap = longest_gap,
            .sparse_chunks = sparse.segments,
            .redone = sparse.redone,
            .sparse_elements = sparse.elements,
            .sparse_bytes = sparse.bytes,
            .brought = brought,
            .sparse_work_us = (sparse.select_ns + sparse.memory_ns) / 1000,
            .sparse_span_us = sparse.span_ns / 1000};
  }
};

}  // namespace riffle
