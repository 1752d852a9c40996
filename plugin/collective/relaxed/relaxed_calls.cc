#include "plugin/collective/relaxed/relaxed_calls.h"

#include <algorithm>
#include <utility>

#include "plugin/config/log.h"

namespace riffle {

RelaxedCalls::RelaxedCalls(RelaxedOptions options, Hooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      layout_(options_.layout),
      place_(options_.rank),
      nodes_(options_.size) {}

RelaxedCalls::~RelaxedCalls() = default;

// -------------------------------------------------------------------------- NCCL's progress thread

RelaxedCalls::Answer RelaxedCalls::all_reduce(const CallShape& shape, StagedCall* call) {
  const std::uint64_t number = next_call_.load(std::memory_order_relaxed);
  call->input.clear();
  // The order of these two and of their counterparts in hold() matters: see there.
  if (number >= hold_.load(std::memory_order_seq_cst) && !take_decisions()) return Answer::kBusy;
  if (!ended_.empty()) {
    std::erase_if(ended_, [](const std::shared_ptr<RelaxedRun>& run) { return run->is_quiet(); });
  }
  if (layout_.look(shape, {}).kind == Layout::Place::Kind::kOutside) {
    layout_.take(shape, hooks_.identify(shape));
    return Answer::kExact;
  }
  Place place;
  const bool is_ours = run_ != nullptr && locate(number, shape, &place);
  RelaxedRun::Position* position = is_ours ? &run_->position(place.position) : nullptr;
  const bool is_staged = is_ours && position->is_relaxed;
  if (is_staged && !reserve(place, call)) return Answer::kBusy;
  const CallIdentity identity = hooks_.identify(shape);
  learn(shape, identity);
  next_call_.store(number + 1, std::memory_order_seq_cst);
  if (!is_ours) {
    if (owing_ != nullptr) bring_residual(shape, identity, call);
    return Answer::kExact;
  }
  const bool takes_part = is_certain(position->piece, shape, identity);
  if (!takes_part) {
    doubt(identity.is_sure ? "not those of its place in the sequence" : identity.why_not);
  }
  if (!is_staged) return Answer::kExact;
  call->is_elsewhere = !takes_part && identity.is_sure;
  stage(shape, place, takes_part, call);
  return Answer::kStaged;
}

void RelaxedCalls::doubt(const char* why) {
  counts_.doubts.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    why_not_ = why;
  }
  if (run_ == nullptr || std::exchange(told_doubt_, true)) return;
  log_warn(std::string(name_of(run_->mode())) + ": not sure which gradients a call holds (" + why +
           "); " +
           (run_->sparse() != nullptr ? "all nodes sum it densely, and all like it"
                                      : "it keeps its own, and so do all like it"));
}

// Pieces are compared by what the digest covers, and by the job's buffer: two buckets that changed
// places look alike otherwise.
bool RelaxedCalls::is_certain(const Layout::Piece& piece, const CallShape& shape,
                              const CallIdentity& identity) const {
  return identity.is_sure && identity.comm_id == piece.comm_id && identity.buffer == piece.buffer &&
         identity.first_element == piece.first && identity.valid_elements == piece.valid &&
         identity.total_elements == piece.total && shape.count == piece.count;
}

void RelaxedCalls::learn(const CallShape& shape, const CallIdentity& identity) {
  const std::uint64_t number = next_call_.load(std::memory_order_relaxed);
  const Layout::Place place = layout_.take(shape, identity);
  if (place.kind == Layout::Place::Kind::kDeviates) {
    const std::lock_guard lock(mutex_);
    known_.reset();
    steady_steps_ = 0;
    why_not_ = "the calls changed";
  } else if (place.kind == Layout::Place::Kind::kAt && run_ == nullptr && !identity.is_sure) {
    doubt(identity.why_not);
  } else if (place.kind == Layout::Place::Kind::kAt && place.begins_step) {
    const std::uint64_t period = layout_.pieces().size();
    const std::uint64_t phase = number % period;
    const std::uint64_t digest = riffle::digest_of(layout_.digest(), period, phase);
    const std::lock_guard lock(mutex_);
    steady_steps_ = layout_.steady_steps();
    if (known_ == nullptr || known_->digest != digest) {
      known_ = std::make_shared<const KnownCalls>(KnownCalls{layout_.pieces(), phase, digest});
    }
  } else if (place.kind == Layout::Place::Kind::kLearning && !identity.is_sure) {
    const std::lock_guard lock(mutex_);
    why_not_ = identity.why_not;
  }
}

// Where call `number` stands in the running mode; false: it is exact. Depends only on what is the
// same on all nodes.
bool RelaxedCalls::locate(std::uint64_t number, const CallShape& shape, Place* place) {
  if (number < from_call_) return false;
  const std::uint64_t period = run_->period();
  place->position = (number + period - run_->phase()) % period;
  const bool begins_step = place->position == 0;
  if (first_call_ == kNever) {
    if (!begins_step) return false;
    first_call_ = number;
  }
  place->step = (number - first_call_) / period;
  if (begins_step && last_step_ == kNever && number >= ends_from_) last_step_ = place->step;
  if (place->step > last_step_) {
    end_mode();
    return false;
  }
  const Layout::Piece& piece = run_->position(place->position).piece;
  if (shape.count != piece.count || shape.type != piece.type || shape.op != piece.op) {
    counts_.deviations.fetch_add(1, std::memory_order_relaxed);
    log_warn(std::string(name_of(run_->mode())) + " ends here: call " + std::to_string(number) +
             " has " + std::to_string(shape.count) + " elements, " + std::to_string(piece.count) +
             " were expected" +
             (run_->sparse() != nullptr
                  ? std::string()
                  : " (parameters of the nodes may differ: docs/policies.md)"));
    end_mode();
    return false;
  }
  const bool is_sparse = run_->sparse() != nullptr;
  const std::uint64_t every = is_sparse ? 0 : options_.settings.full_every;
  place->is_full = place->step == last_step_ || (every > 0 && place->step % every == every - 1);
  return true;
}

void RelaxedCalls::end_mode() {
  // Calls under way keep it; rounds do not.
  if (run_->mode() == SyncMode::kShadowSync) ended_.push_back(run_);
  if (run_->sparse() != nullptr &&
      run_->sparse()->settings().residual != sparse::ResidualPolicy::kEf21) {
    owing_ = run_;
  }
  run_.reset();
  from_call_ = first_call_ = ends_from_ = last_step_ = kNever;
  const std::lock_guard lock(mutex_);
  is_relaxed_ = std::any_of(decisions_.begin(), decisions_.end(),
                            [](const Decision& d) { return d.run != nullptr; });
}

// False: calls are held, and the decision is not known yet.
bool RelaxedCalls::take_decisions() {
  const std::lock_guard lock(mutex_);
  for (; !decisions_.empty(); decisions_.pop_front()) {
    Decision& d = decisions_.front();
    if (d.run != nullptr) {
      give_up_residuals();
      run_ = std::move(d.run);
      from_call_ = d.call;
      first_call_ = ends_from_ = last_step_ = kNever;
    } else if (ends_from_ == kNever) {
      ends_from_ = d.call;
    }
  }
  hold_.store(held_, std::memory_order_seq_cst);
  return next_call_.load(std::memory_order_relaxed) < held_;
}

bool RelaxedCalls::is_in_background(const Place& place) const {
  return run_->mode() == SyncMode::kShadowSync && !place.is_full;
}

bool RelaxedCalls::begins_round(const Place& place) const {
  return is_in_background(place) && place.step % run_->shadow_steps() == 0;
}

void RelaxedCalls::fence() {
  const std::lock_guard lock(memory_mutex_);
  is_fenced_ = true;
}

RelaxedTotals RelaxedCalls::totals() const {
  return {.calls = counts_.calls,
          .full_calls = counts_.full_calls,
          .doubts = counts_.doubts,
          .mismatches = counts_.mismatches,
          .not_finite = counts_.not_finite,
          .deviations = counts_.deviations,
          .rounds = counts_.rounds,
          .waits = counts_.waits,
          .corrections = counts_.corrections,
          .gap_steps = counts_.gap_steps,
          .longest_gap = counts_.longest_gap,
          .sparse_chunks = counts_.sparse.segments,
          .redone = counts_.sparse.redone,
          .sparse_elements = counts_.sparse.elements,
          .sparse_bytes = counts_.sparse.bytes,
          .brought = counts_.brought,
          .sparse_work_us = (counts_.sparse.select_ns + counts_.sparse.memory_ns) / 1000,
          .sparse_span_us = counts_.sparse.span_ns / 1000};
}

}  // namespace riffle
