#include "plugin/collective/relaxed/sparse_calls.h"

#include <algorithm>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/kernels/convert.h"
#include "plugin/kernels/float_environment.h"
#include "plugin/kernels/types.h"

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

// The same operand of the same collective, whichever elements of it the call has.
bool is_same_operand(const Layout::Piece& piece, const CallShape& shape,
                     const CallIdentity& identity) {
  return identity.is_sure && identity.comm_id == piece.comm_id && identity.buffer == piece.buffer &&
         identity.total_elements == piece.total && shape.type == piece.type && shape.op == piece.op;
}

// Adds `count` residuals of a segment, from element `first` on, to what stands at `at`.
void bring(SparseSegment* segment, std::uint64_t first, std::uint64_t count, DataType type,
           std::byte* at) {
  const DefaultFloatEnvironment environment;
  float* const residual = segment->state.residual.data() + first;
  std::vector<float> sum(count);
  rules::widen(at, type, count, sum.data());
  for (std::uint64_t k = 0; k < count; ++k) sum[k] += residual[k];
  rules::narrow(sum.data(), type, count, at);
  std::fill_n(residual, count, 0.0F);
  segment->holds_residual =
      std::ranges::any_of(segment->state.residual, [](float x) { return x != 0.0F; });
}

}  // namespace

bool SparseCalls::has_room(const RelaxedRun::Position& position) const {
  return under_way_ + position.segments <= RelaxedRun::kMaxSegments;
}

void SparseCalls::stage(const CallShape& shape, const CallPlace& place, StagedCall* call) {
  SparseRun& run = *call->run->sparse();
  const std::span<SparseSegment> segments = run.segments(place.position);
  under_way_ += segments.size();
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
    s.is_certain = call->takes_part;
    s.digest = call->run->digest_of(place.position, number++, place.step, place.is_full);
    s.operation.state.store(Operation::State::kRunning, std::memory_order_relaxed);
    post_(&s.operation);
  }
}

Result<bool> SparseCalls::test(StagedCall* call) {
  const std::span<SparseSegment> segments = call->run->sparse()->segments(call->position);
  bool has_failed = false;
  for (const SparseSegment& s : segments) {
    const Operation::State state = s.operation.state.load(std::memory_order_acquire);
    if (state == Operation::State::kRunning) return false;
    has_failed = has_failed || state == Operation::State::kFailed;
  }
  under_way_ -= segments.size();
  for (const SparseSegment& s : segments) count_outcome(s.outcome);
  call->run->position(call->position).is_busy = false;
  call->run.reset();
  if (has_failed) return remote_error("a sparse call failed");
  return true;
}

void SparseCalls::count_outcome(SparseSegment::Outcome outcome) {
  switch (outcome) {
    case SparseSegment::Outcome::kSparse:
    case SparseSegment::Outcome::kDense:
    case SparseSegment::Outcome::kInDoubt:  // the node in doubt counts and says it
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
// What counts is which elements a call has, not whether NCCL cuts the collective as before.
void SparseCalls::bring_residual(const CallShape& shape, const CallIdentity& identity,
                                 StagedCall* call) {
  if (owing_ == nullptr) return;
  SparseRun& run = *owing_->sparse();
  const std::vector<RelaxedRun::Position>& positions = owing_->positions();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Layout::Piece& piece = positions[i].piece;
    if (positions[i].is_busy || !run.holds_residual(i) ||
        !is_same_operand(piece, shape, identity)) {
      continue;
    }
    for (SparseSegment& s : run.segments(i)) {
      const std::uint64_t begin = piece.first + s.first;
      const std::uint64_t from = std::max(begin, identity.first_element);
      const std::uint64_t to =
          std::min(begin + s.elements, identity.first_element + identity.valid_elements);
      if (!s.holds_residual || from >= to) continue;
      const std::lock_guard lock(memory_.mutex);
      if (memory_.is_fenced) return;
      const auto type = static_cast<DataType>(shape.type);
      if (call->input.empty()) {
        const auto* send = static_cast<const std::byte*>(shape.send);
        call->input.assign(send, send + shape.count * size_of(type));
      }
      bring(&s, from - begin, to - from, type,
            call->input.data() + (from - identity.first_element) * size_of(type));
    }
  }
  if (!call->input.empty()) counts_.brought.fetch_add(1, std::memory_order_relaxed);
  // While calls of the mode are under way they may leave some.
  const bool is_busy =
      std::ranges::any_of(positions, [](const RelaxedRun::Position& p) { return p.is_busy; });
  if (!is_busy && !run.holds_residual()) owing_.reset();
}

// The next mode begins. Whatever still waits belongs to calls that did not come again.
void SparseCalls::give_up_residuals() {
  if (owing_ == nullptr) return;
  const std::shared_ptr<RelaxedRun> run = std::exchange(owing_, nullptr);
  std::uint64_t calls = 0;
  for (std::size_t i = 0; i < run->positions().size(); ++i) {
    if (run->position(i).is_busy) continue;
    calls += run->sparse()->holds_residual(i) ? 1 : 0;
  }
  if (calls == 0) return;
  counts_.lost.fetch_add(calls, std::memory_order_relaxed);
  log_warn(
      "sparse: residuals of {} calls are given up, as their elements have not come "
      "again since the mode ended",
      calls);
}

}  // namespace riffle
