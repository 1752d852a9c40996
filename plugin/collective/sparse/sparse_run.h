// SparseRun: what the sparse mode needs on one node from its beginning to its end: for every large
// call of the agreed sequence its segments with their residuals, and exchanges to run them.
//
// After the mode has ended it lives on until what its residuals hold went into exact sums
// (RelaxedCalls).
//
// Threads: make() in the Background; then segments as sparse_segment.h says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "plugin/collective/base/mode_participant.h"
#include "plugin/collective/base/sync_mode.h"
#include "plugin/collective/sparse/sparse_segment.h"
#include "plugin/identity/layout.h"

namespace riffle {

class SparseRun {
 public:
  // Whether a call may be sparse at all: a large sum of floats with few stale elements behind.
  static bool is_eligible(const Layout::Piece& piece, std::uint64_t min_bytes,
                          std::uint64_t chunk_elements);
  // Elements of all segments of a call but the last.
  static std::uint64_t segment_elements(const Layout::Piece& piece, std::uint64_t chunk_elements);
  // Of a segment, with the stale elements behind it: what the runner must expect.
  static std::uint64_t most_elements(std::uint64_t chunk_elements) { return 2 * chunk_elements; }

  // `rank` of `size` nodes. An error: the order does not fit, or the memory is over the limit.
  // (`settings.survives_losses`: with memory for states that have to come back.)
  static Result<std::unique_ptr<SparseRun>> make(const SparseOrder& order,
                                                 const std::vector<Layout::Piece>& pieces,
                                                 const SyncSettings& settings, int rank, int size,
                                                 std::uint64_t chunk_elements);

  // Of the call at a position of the sequence; none where it is exact.
  std::span<SparseSegment> segments(std::size_t position);
  // The call's residuals hold what was not delivered.
  bool holds_residual(std::size_t position);
  bool holds_residual();
  const SparseSettings& settings() const { return settings_; }
  std::size_t bytes() const { return bytes_; }

 private:
  SparseRun() = default;

  struct Position {
    std::size_t first = 0, count = 0;
  };
  SparseSettings settings_;
  SparsePlaces places_;
  std::vector<Position> positions_;
  std::unique_ptr<SparseSegment[]> segments_;
  std::size_t count_ = 0;
  std::map<std::uint64_t, SparsePool> pools_;  // by elements
  std::size_t bytes_ = 0;
};

}  // namespace riffle
