#include "plugin/collective/relaxed/relaxed_calls.h"

#include <algorithm>
#include <utility>

#include "plugin/config/log.h"

namespace riffle {

RelaxedCalls::RelaxedCalls(RelaxedOptions options, Hooks hooks)
    : options_(std::move(options)),
      identify_(std::move(hooks.identify)),
      decisions_(options_, counts_),
      averages_(options_.size, hooks.post, counts_, memory_),
      sparse_(hooks.post, counts_, memory_),
      narrow_(hooks.post, counts_, memory_),
      layout_(options_.layout) {}

RelaxedCalls::Answer RelaxedCalls::all_reduce(const CallShape& shape, StagedCall* call) {
  const std::uint64_t number = decisions_.next_call();
  call->input.clear();
  // This comes before count_call(): see ModeDecisions::hold().
  if (decisions_.is_held() && !take_decisions()) return Answer::kBusy;
  if (!ended_.empty()) {
    std::erase_if(ended_, [](const std::shared_ptr<RelaxedRun>& run) { return run->is_quiet(); });
  }
  if (layout_.look(shape, {}).kind == Layout::Place::Kind::kOutside) {
    layout_.take(shape, identify_(shape));
    return Answer::kExact;
  }
  CallPlace place;
  const bool is_ours = run_ != nullptr && locate(number, shape, &place);
  RelaxedRun::Position* position = is_ours ? &run_->position(place.position) : nullptr;
  const bool is_staged = is_ours && position->is_relaxed;
  if (is_staged && !reserve(place, call)) return Answer::kBusy;
  const CallIdentity identity = identify_(shape);
  learn(shape, identity);
  decisions_.count_call();
  if (!is_ours) {
    sparse_.bring_residual(shape, identity, call);
    return Answer::kExact;
  }
  const bool takes_part = is_certain(position->piece, shape, identity);
  if (!takes_part) {
    doubt(identity.is_sure ? "not those of its place in the sequence" : identity.why_not);
  }
  if (!is_staged) return Answer::kExact;
  position->is_busy = true;
  call->run = run_;
  call->position = place.position;
  call->send = static_cast<const std::byte*>(shape.send);
  call->recv = static_cast<std::byte*>(const_cast<void*>(shape.recv));
  call->takes_part = takes_part;
  call->is_elsewhere = !takes_part && identity.is_sure;
  call->is_full = place.is_full;
  if (run_->sparse() != nullptr) {
    sparse_.stage(shape, place, call);
  } else if (run_->narrow() != nullptr) {
    narrow_.stage(call);
  } else {
    averages_.stage(shape, place, call);
  }
  return Answer::kStaged;
}

// What the call needs besides a request; false: not now, nothing is taken.
bool RelaxedCalls::reserve(const CallPlace& place, StagedCall* call) {
  const RelaxedRun::Position& position = run_->position(place.position);
  call->segment = RelaxedRun::kNone;
  call->has_failed = false;
  if (position.is_busy) return false;
  if (run_->sparse() != nullptr) return sparse_.has_room(position);
  if (run_->narrow() != nullptr) return NarrowCalls::reserve(*run_, call);
  return averages_.reserve(*run_, place, call);
}

Result<bool> RelaxedCalls::test(StagedCall* call) {
  if (call->run->sparse() != nullptr) return sparse_.test(call);
  return call->run->narrow() != nullptr ? narrow_.test(call) : averages_.test(call);
}

void RelaxedCalls::doubt(const char* why) {
  counts_.doubts.fetch_add(1, std::memory_order_relaxed);
  decisions_.note_doubt(why);
  if (run_ == nullptr || std::exchange(told_doubt_, true)) return;
  log_warn("{}: not sure which gradients a call holds ({}); {}", name_of(run_->mode()), why,
           (run_->sparse() != nullptr   ? "all nodes sum it densely, and all like it"
            : run_->narrow() != nullptr ? "it sends it without what rounding kept back before"
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
  const std::uint64_t number = decisions_.next_call();
  const Layout::Place place = layout_.take(shape, identity);
  if (place.kind == Layout::Place::Kind::kDeviates) {
    decisions_.calls_changed();
  } else if (place.kind == Layout::Place::Kind::kAt && run_ == nullptr && !identity.is_sure) {
    doubt(identity.why_not);
  } else if (place.kind == Layout::Place::Kind::kAt && place.begins_step) {
    const std::uint64_t period = layout_.pieces().size();
    const std::uint64_t phase = number % period;
    const std::uint64_t digest = riffle::digest_of(layout_.digest(), period, phase);
    decisions_.learned(layout_.steady_steps(), digest, [&] {
      return KnownCalls{layout_.pieces(), phase, digest};
    });
  } else if (place.kind == Layout::Place::Kind::kLearning && !identity.is_sure) {
    decisions_.note_doubt(identity.why_not);
  }
}

// Where call `number` stands in the running mode; false: it is exact. Depends only on what is the
// same on all nodes.
bool RelaxedCalls::locate(std::uint64_t number, const CallShape& shape, CallPlace* place) {
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
    log_warn("{} ends here: call {} has {} elements, {} were expected{}", name_of(run_->mode()),
             number, shape.count, piece.count,
             (is_same_on_all_nodes(run_->mode())
                  ? std::string()
                  : " (parameters of the nodes may differ: docs/policies.md)"));
    end_mode();
    return false;
  }
  const std::uint64_t every = is_same_on_all_nodes(run_->mode()) ? 0 : options_.settings.full_every;
  place->is_full = place->step == last_step_ || (every > 0 && place->step % every == every - 1);
  return true;
}

void RelaxedCalls::end_mode() {
  // Calls under way keep it; rounds do not.
  if (run_->mode() == SyncMode::kShadowSync) ended_.push_back(run_);
  if (run_->sparse() != nullptr &&
      run_->sparse()->settings().residual != sparse::ResidualPolicy::kEf21) {
    sparse_.owe(run_);
  }
  run_.reset();
  from_call_ = first_call_ = ends_from_ = last_step_ = kNever;
  decisions_.mode_ended();
}

// False: calls are held, and the decision is not known yet.
bool RelaxedCalls::take_decisions() {
  bool may_go = false;
  for (ModeDecisions::Decision& d : decisions_.take_over(&may_go)) {
    if (d.run != nullptr) {
      sparse_.give_up_residuals();
      run_ = std::move(d.run);
      from_call_ = d.call;
      first_call_ = ends_from_ = last_step_ = kNever;
    } else if (ends_from_ == kNever) {
      ends_from_ = d.call;
    }
  }
  return may_go;
}

}  // namespace riffle
