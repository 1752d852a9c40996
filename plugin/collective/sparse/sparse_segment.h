// SparseSegment: one call of the sparse mode, or an even part of a call that is longer than a
// chunk: what stays on this node between calls (residual, thresholds) and what the call under way
// brings. The unit of the schedule: no segment ever waits for a later one.
//
// Threads: NCCL's progress thread while operation.state is not kRunning, the reactor while it is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/collective/engine/operation.h"
#include "sparse/element.h"
#include "sparse/exchange.h"
#include "sparse/residual.h"

namespace riffle {

// Which node stands at which position of the schedule (sparse/schedule.h), and we.
struct SparsePlaces {
  std::vector<int> node_at;
  int own = 0;
};

// Exchanges for segments of one length: as many as can be under way. Reactor only.
struct SparsePool {
  std::vector<std::unique_ptr<sparse::Exchange>> free;
  sparse::ExchangeOptions options;
};

struct SparseSegment {
  Operation operation;  // operation.sparse is this

  // Of the mode.
  std::uint64_t first = 0;     // element of the call
  std::uint64_t elements = 0;  // valid ones
  std::uint64_t whole = 0;     // and stale ones behind them, which a dense sum takes along
  const SparsePlaces* places = nullptr;
  SparsePool* pool = nullptr;
  int teams = 1;
  sparse::ChunkState state;
  double state_density = 0;     // that the state was last moved to
  bool holds_residual = false;  // of gradients that were not delivered
  // Where nodes may be lost and what was not over everywhere begins again (survivors.h): the state
  // as it was before the call.
  struct Before {
    sparse::ChunkState state;
    double density = 0;
    bool holds_residual = false;
  };
  std::unique_ptr<Before> before;  // null: the state need not come back
  void remember() {
    if (before == nullptr) return;
    before->state = state;
    before->density = state_density;
    before->holds_residual = holds_residual;
  }
  void roll_back() {
    if (before == nullptr) return;
    state = before->state;
    state_density = before->density;
    holds_residual = before->holds_residual;
  }

  // Of the call.
  const std::byte* send = nullptr;  // element `first`
  std::byte* recv = nullptr;
  const std::byte* kept = nullptr;  // as Operation::kept
  sparse::Element element = sparse::Element::kFloat32;
  double density = 0.01;
  bool is_dense = false;     // all of gradient and residual, the last step of a mode
  bool is_certain = true;    // that these are the elements that the state belongs to
  std::uint32_t digest = 0;  // of mode, sequence, position, segment and step: the same on all nodes

  // What became of it, valid when the operation is over.
  enum class Outcome : std::uint8_t { kSparse, kDense, kInDoubt, kMixedUp, kNotFinite };
  Outcome outcome = Outcome::kSparse;
};

}  // namespace riffle
