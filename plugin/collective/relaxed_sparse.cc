// The calls of the sparse mode: straight from and to the job's memory, on the reactor; and where
// residuals go when the mode has ended.
#include <algorithm>
#include <utility>

#include "plugin/collective/float_environment.h"
#include "plugin/collective/relaxed_calls.h"
#include "plugin/collective/types.h"
#include "plugin/config/log.h"
#include "plugin/policy/rules/convert.h"

namespace riffle {
namespace {

sparse::Element element_of(int type) {
  switch (static_cast<DataType>(type)) {
    case DataType::kFloat16:
      return sparse::Element::kFloat16;
    case DataType::kBfloat16:
      return sparse::Element::kBfloat16;
    default:
      return sparse::Element::kFloat32;
  }
}

}  // namespace

bool RelaxedCalls::reserve_sparse(const RelaxedRun::Position& position) const {
  return sparse_under_way_ + position.segments <= RelaxedRun::kMaxSegments;
}

void RelaxedCalls::stage_sparse(const CallShape& shape, const Place& place, bool takes_part,
                                StagedCall* call) {
  SparseRun& run = *run_->sparse();
  const std::span<SparseSegment> segments = run.segments(place.position);
  sparse_under_way_ += segments.size();
  const bool is_ef21 = run.settings().residual == sparse::ResidualPolicy::kEf21;
  const sparse::Element element = element_of(shape.type);
  std::uint32_t number = 0;
  for (SparseSegment& s : segments) {
    const std::size_t at = s.first * sparse::size_of(element);
    s.send = call->send + at;
    s.recv = call->recv + at;
    s.kept = call->kept == nullptr ? nullptr : call->kept + at;
    s.element = element;
    s.density = density_in(run.settings(), place.step);
    s.is_dense = place.is_full && !is_ef21;
    s.is_certain = takes_part;
    s.digest = run_->digest_of(place.position, number++, place.step, place.is_full);
    s.operation.state.store(Operation::State::kRunning, std::memory_order_relaxed);
    hooks_.post(&s.operation);
  }
}

Result<bool> RelaxedCalls::test_sparse(StagedCall* call) {
  const std::span<SparseSegment> segments = call->run->sparse()->segments(call->position);
  bool has_failed = false;
  for (const SparseSegment& s : segments) {
    const Operation::State state = s.operation.state.load(std::memory_order_acquire);
    if (state == Operation::State::kRunning) return false;
    has_failed = has_failed || state == Operation::State::kFailed;
  }
  sparse_under_way_ -= segments.size();
  for (const SparseSegment& s : segments) count_outcome(s.outcome);
  call->run->position(call->position).is_busy = false;
  call->run.reset();
  if (has_failed) return remote_error("a sparse call failed");
  return true;
}

void RelaxedCalls::count_outcome(SparseSegment::Outcome outcome) {
  switch (outcome) {
    case SparseSegment::Outcome::kSparse:
    case SparseSegment::Outcome::kDense:
    case SparseSegment::Outcome::kInDoubt:  // who is in doubt counts and says it
      return;
    case SparseSegment::Outcome::kMixedUp:
      counts_.mismatches.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(told_mismatch_, true)) {
        log_warn("sparse: the nodes were not at the same call; all sum it densely");
      }
      return;
    case SparseSegment::Outcome::kNotFinite:
      counts_.not_finite.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(told_not_finite_, true)) {
        log_warn("sparse: gradients that are not finite; all nodes get them so, as in a dense sum");
      }
      return;
  }
}

// What a node adds to its own gradient is its own affair in an exact sum: no agreement is needed.
void RelaxedCalls::bring_residual(const CallShape& shape, const CallIdentity& identity,
                                  StagedCall* call) {
  SparseRun& run = *owing_->sparse();
  const std::vector<RelaxedRun::Position>& positions = owing_->positions();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Layout::Piece& piece = positions[i].piece;
    if (positions[i].is_busy || !run.holds_residual(i) || shape.type != piece.type ||
        shape.op != piece.op || !is_certain(piece, shape, identity)) {
      continue;
    }
    const DefaultFloatEnvironment environment;
    const auto type = static_cast<DataType>(shape.type);
    const auto* send = static_cast<const std::byte*>(shape.send);
    const std::lock_guard lock(memory_mutex_);
    if (is_fenced_) return;
    call->input.assign(send, send + shape.count * size_of(type));
    std::vector<float> sum;
    for (SparseSegment& s : run.segments(i)) {
      std::byte* at = call->input.data() + s.first * size_of(type);
      sum.resize(s.elements);
      rules::widen(at, type, s.elements, sum.data());
      for (std::uint64_t k = 0; k < s.elements; ++k) sum[k] += s.state.residual[k];
      rules::narrow(sum.data(), type, s.elements, at);
      std::ranges::fill(s.state.residual, 0.0F);
      s.holds_residual = false;
    }
    counts_.brought.fetch_add(1, std::memory_order_relaxed);
    break;
  }
  // While calls of the mode are under way they may leave some.
  const bool is_busy =
      std::ranges::any_of(positions, [](const RelaxedRun::Position& p) { return p.is_busy; });
  if (!is_busy && !run.holds_residual()) owing_.reset();
}

// The next mode begins. Whatever still waits belongs to calls that did not come again.
void RelaxedCalls::give_up_residuals() {
  if (owing_ == nullptr) return;
  const std::shared_ptr<RelaxedRun> run = std::exchange(owing_, nullptr);
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < run->positions().size(); ++i) {
    if (run->position(i).is_busy) continue;
    calls += run->sparse()->holds_residual(i) ? 1 : 0;
  }
  if (calls == 0) return;
  counts_.lost.fetch_add(calls, std::memory_order_relaxed);
  log_warn("sparse: residuals of " + std::to_string(calls) +
           " calls are given up, as those calls have not come again since the mode ended");
}

}  // namespace riffle
