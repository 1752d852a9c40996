#include "plugin/collective/relaxed_calls.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/types.h"
#include "plugin/config/log.h"
#include "plugin/policy/rules/gradient_rules.h"
#include "plugin/policy/rules/trailer.h"

namespace riffle {
namespace {

// Calls that may come at once, whatever the pace was.
constexpr std::uint64_t kBurstCalls = 16;

// What all members of a group must agree on for one segment.
std::uint32_t digest_of(const RelaxedRun& run, std::size_t position, std::uint32_t segment,
                        std::uint64_t step, bool is_full) {
  std::uint64_t h = run.digest() ^ static_cast<std::uint64_t>(run.mode()) << 60;
  for (const std::uint64_t n :
       {std::uint64_t{position}, std::uint64_t{segment}, step, std::uint64_t{is_full}}) {
    h = (h ^ n) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return static_cast<std::uint32_t>(h >> 32);
}

}  // namespace

RelaxedCalls::RelaxedCalls(RelaxedOptions options, Hooks hooks)
    : options_(std::move(options)), hooks_(std::move(hooks)), layout_(options_.layout) {}

RelaxedCalls::~RelaxedCalls() = default;

// -------------------------------------------------------------------------- NCCL's progress thread

RelaxedCalls::Answer RelaxedCalls::all_reduce(const CallShape& shape, StagedCall* call) {
  const std::uint64_t number = next_call_.load(std::memory_order_relaxed);
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
  if (!is_ours) return Answer::kExact;
  const bool takes_part = is_certain(position->piece, shape, identity);
  if (!takes_part) {
    doubt(identity.is_sure ? "not those of its place in the sequence" : identity.why_not);
  }
  if (!is_staged) return Answer::kExact;
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
           "); it keeps its own, and so do all like it");
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
             " were expected (parameters of the nodes may differ: docs/policies.md)");
    end_mode();
    return false;
  }
  const std::uint64_t every = options_.settings.full_every;
  place->is_full = place->step == last_step_ || (every > 0 && place->step % every == every - 1);
  return true;
}

void RelaxedCalls::end_mode() {
  // Calls under way keep it; rounds do not.
  if (run_->mode() == SyncMode::kShadowSync) ended_.push_back(run_);
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

// Whatever the call needs besides a request; false: not now, nothing is taken.
bool RelaxedCalls::reserve(const Place& place, StagedCall* call) {
  RelaxedRun& run = *run_;
  RelaxedRun::Position& position = run.position(place.position);
  call->segment = RelaxedRun::kNone;
  call->has_failed = false;
  if (position.is_busy) return false;
  collect(run, position);
  const bool is_alone = is_in_background(place) && !begins_round(place);
  if (is_alone || position.segments == 0) return true;
  if (position.round != RelaxedRun::kNone) {
    if (!std::exchange(is_waiting_, true)) counts_.waits.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  is_waiting_ = false;
  call->segment = run.take(position.segments);
  if (call->segment != RelaxedRun::kNone) return true;
  // Rounds that are over still hold theirs until somebody looks.
  for (RelaxedRun::Position& other : run.positions()) collect(run, other);
  return false;
}

// What is over of the position's background round.
void RelaxedCalls::collect(RelaxedRun& run, RelaxedRun::Position& position) {
  while (position.round != RelaxedRun::kNone) {
    RelaxedRun::Segment& segment = run.segment(position.round);
    const Operation::State state = segment.operation.state.load(std::memory_order_acquire);
    if (state == Operation::State::kRunning) return;
    has_failed_ |= state == Operation::State::kFailed;
    const rules::Verdict verdict = rules::read_trailer(segment.data + segment.count, options_.size);
    if (verdict.kind == rules::Verdict::Kind::kAverage) {
      rules::correction(segment.data, verdict.members, position.second + segment.first,
                        segment.count, 1, position.third + segment.first);
    } else {
      counts_.mismatches.fetch_add(1, std::memory_order_relaxed);
      std::fill_n(position.third + segment.first, segment.count, 0.0F);
    }
    const std::uint32_t next = segment.next;
    run.give_back(position.round);
    position.round = next;
    // A node that kept out of the round keeps its own.
    if (next == RelaxedRun::kNone) position.has_missing = position.round_takes_part;
  }
}

// Only this thread writes.
void RelaxedCalls::count_gap(std::uint64_t steps) {
  counts_.corrections.fetch_add(1, std::memory_order_relaxed);
  counts_.gap_steps.fetch_add(steps, std::memory_order_relaxed);
  if (steps > counts_.longest_gap.load(std::memory_order_relaxed)) {
    counts_.longest_gap.store(steps, std::memory_order_relaxed);
  }
}

rules::MomentumState RelaxedCalls::momentum_of(const RelaxedRun::Position& position,
                                               std::uint64_t first) const {
  return {position.second + first, position.state + first, position.third + first};
}

void RelaxedCalls::stage(const CallShape& shape, const Place& place, bool takes_part,
                         StagedCall* call) {
  RelaxedRun& run = *run_;
  RelaxedRun::Position& position = run.position(place.position);
  position.is_busy = true;
  call->run = run_;
  call->position = place.position;
  call->send = static_cast<const std::byte*>(shape.send);
  call->recv = static_cast<std::byte*>(const_cast<void*>(shape.recv));
  call->takes_part = takes_part;
  call->is_full = place.is_full;
  call->has_failed = has_failed_;
  counts_.calls.fetch_add(1, std::memory_order_relaxed);
  if (place.is_full) counts_.full_calls.fetch_add(1, std::memory_order_relaxed);

  const std::lock_guard lock(memory_mutex_);
  if (is_in_background(place)) return step_alone(place, call);
  const auto type = static_cast<DataType>(shape.type);
  const bool brings = takes_part && std::exchange(position.has_missing, false);
  if (brings) count_gap(place.step - position.round_step);
  const float* missing = brings ? position.third : nullptr;
  std::uint32_t number = 0;
  for (std::uint32_t i = call->segment; i != RelaxedRun::kNone; ++number) {
    RelaxedRun::Segment& segment = run.segment(i);
    i = segment.next;
    segment.first = number * position.segment_elements;
    segment.count = std::min(position.segment_elements, position.piece.valid - segment.first);
    const std::byte* g = call->send + segment.first * size_of(type);
    bool is_finite = true;
    if (!takes_part || is_fenced_) {
      std::fill_n(segment.data, segment.count, 0.0F);
    } else if (run.momentum() > 0) {
      is_finite = rules::prepare_momentum(momentum_of(position, segment.first), g, type,
                                          segment.count, run.momentum(), segment.data);
    } else {
      is_finite =
          rules::prepare(position.state + segment.first, g, type, segment.count, segment.data);
      // What others may have taken over already must not be lost to the mean.
      for (std::uint64_t k = 0; missing != nullptr && k < segment.count; ++k) {
        segment.data[k] += missing[segment.first + k];
      }
    }
    post(run, segment, place, number, takes_part, is_finite);
  }
}

// shadow_sync: the answer is ready; a round may begin behind it.
void RelaxedCalls::step_alone(const Place& place, StagedCall* call) {
  RelaxedRun& run = *run_;
  RelaxedRun::Position& position = run.position(place.position);
  const auto type = static_cast<DataType>(position.piece.type);
  const bool corrects = call->takes_part && std::exchange(position.has_missing, false);
  if (corrects) count_gap(place.step - position.round_step);
  if (!is_fenced_) {
    rules::step_alone(call->send, corrects ? position.third : nullptr, options_.size,
                      position.piece.valid, position.state, type, call->recv);
  }
  if (!begins_round(place)) return;
  counts_.rounds.fetch_add(1, std::memory_order_relaxed);
  position.round = std::exchange(call->segment, RelaxedRun::kNone);
  position.round_step = place.step;
  position.round_takes_part = call->takes_part;
  std::copy_n(position.state, position.piece.valid, position.second);
  std::uint32_t number = 0;
  for (std::uint32_t i = position.round; i != RelaxedRun::kNone; ++number) {
    RelaxedRun::Segment& segment = run.segment(i);
    i = segment.next;
    segment.first = number * position.segment_elements;
    segment.count = std::min(position.segment_elements, position.piece.valid - segment.first);
    if (call->takes_part) {
      std::copy_n(position.second + segment.first, segment.count, segment.data);
    } else {
      std::fill_n(segment.data, segment.count, 0.0F);
    }
    Place round = place;
    round.step = place.step / run.shadow_steps();
    post(run, segment, round, number, call->takes_part, true);
  }
}

void RelaxedCalls::post(RelaxedRun& run, RelaxedRun::Segment& segment, const Place& place,
                        std::uint32_t number, bool takes_part, bool is_finite) {
  const RelaxedRun::Position& position = run.position(place.position);
  const std::uint32_t digest = digest_of(run, place.position, number, place.step, place.is_full);
  rules::write_trailer({takes_part, is_finite, digest}, options_.size,
                       segment.data + segment.count);
  Operation& o = segment.operation;
  o.type = DataType::kFloat32;
  o.op = ReduceOp::kSum;
  o.count = segment.count + run.trailer_elements();
  o.send = o.recv = reinterpret_cast<std::byte*>(segment.data);
  o.step = place.is_full ? Operation::kExact : static_cast<std::int64_t>(place.step);
  o.lane = static_cast<std::uint32_t>(position.first_lane + number);
  o.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  hooks_.post(&o);
}

Result<bool> RelaxedCalls::test(StagedCall* call) {
  RelaxedRun& run = *call->run;
  if (call->has_failed) {
    call->run.reset();
    return remote_error("a background round failed");
  }
  while (call->segment != RelaxedRun::kNone) {
    RelaxedRun::Segment& segment = run.segment(call->segment);
    const Operation::State state = segment.operation.state.load(std::memory_order_acquire);
    if (state == Operation::State::kRunning) return false;
    if (state == Operation::State::kFailed) {
      // The communicator is over; nobody needs the other segments any more.
      call->run.reset();
      return remote_error("a relaxed call failed");
    }
    finish(*call, segment);
    const std::uint32_t next = segment.next;
    run.give_back(call->segment);
    call->segment = next;
  }
  run.position(call->position).is_busy = false;
  call->run.reset();
  return true;
}

void RelaxedCalls::finish(const StagedCall& call, RelaxedRun::Segment& segment) {
  RelaxedRun::Position& position = call.run->position(call.position);
  const auto type = static_cast<DataType>(position.piece.type);
  float* state = position.state + segment.first;
  std::byte* out = call.recv + segment.first * size_of(type);
  const rules::Verdict verdict = rules::read_trailer(segment.data + segment.count, options_.size);
  const std::lock_guard lock(memory_mutex_);
  if (is_fenced_) return;
  if (!call.takes_part) return keep(call, segment, state);
  switch (verdict.kind) {
    case rules::Verdict::Kind::kAverage: {
      const bool resets = call.is_full && verdict.members == options_.size;
      if (call.run->momentum() > 0) {
        const std::byte* g = call.send + segment.first * size_of(type);
        rules::finish_momentum(segment.data, verdict.members, options_.size, g, segment.count,
                               call.run->momentum(), resets, momentum_of(position, segment.first),
                               type, out);
        return;
      }
      rules::finish(segment.data, verdict.members, options_.size, segment.count, resets, state,
                    type, out);
      return;
    }
    case rules::Verdict::Kind::kKeep:
      counts_.mismatches.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(told_mismatch_, true)) {
        log_warn(std::string(name_of(call.run->mode())) +
                 ": the members of a group were not at the same call; they keep what is their own");
      }
      return keep(call, segment, state);
    case rules::Verdict::Kind::kNotFinite:
      counts_.not_finite.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(told_not_finite_, true)) {
        log_warn(std::string(name_of(call.run->mode())) +
                 ": gradients that are not finite; all members of the group get them so");
      }
      rules::fill_not_finite(segment.count, type, out);
      return;
  }
}

void RelaxedCalls::keep(const StagedCall& call, const RelaxedRun::Segment& segment, float* state) {
  const RelaxedRun::Position& position = call.run->position(call.position);
  const auto type = static_cast<DataType>(position.piece.type);
  const std::uint64_t at = segment.first * size_of(type);
  if (call.run->momentum() > 0) {
    return rules::keep_momentum(call.send + at, options_.size, segment.count, call.run->momentum(),
                                momentum_of(position, segment.first), type, call.recv + at);
  }
  rules::keep(call.send + at, options_.size, segment.count, state, type, call.recv + at);
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
          .longest_gap = counts_.longest_gap};
}

// --------------------------------------------------------------------------------------- reactor

SyncReport RelaxedCalls::report() {
  SyncReport r;
  const std::uint64_t doubts = counts_.doubts.load(std::memory_order_relaxed);
  const std::uint64_t mismatches = counts_.mismatches.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  r.layout = known_ == nullptr ? 0 : known_->digest;
  r.steady_steps = steady_steps_;
  r.relaxed_nodes = is_relaxed_ ? 1 : 0;
  r.doubts = doubts - std::exchange(doubts_before_, doubts);
  r.mismatches = mismatches - std::exchange(mismatches_before_, mismatches);
  r.why = why_not_;
  return r;
}

Status RelaxedCalls::prepare(const ModeOrder& order) {
  if (order.mode == SyncMode::kExact) {
    const std::lock_guard lock(mutex_);
    prepared_.reset();
    return Status::ok();
  }
  std::shared_ptr<const KnownCalls> known;
  {
    const std::lock_guard lock(mutex_);
    known = known_;
    if (is_relaxed_) return invalid_argument("a mode runs already");
  }
  if (known == nullptr) return invalid_argument("its calls do not repeat");
  Result<std::shared_ptr<RelaxedRun>> run = RelaxedRun::make(order, *known, options_);
  if (!run) return run.status();
  const std::lock_guard lock(mutex_);
  prepared_ = std::move(*run);
  return Status::ok();
}

// No call from the answer on has begun, nor will it: the caller's thread stores hold_ and then
// reads next_call_, the other one stores next_call_ and then reads hold_, all in one order. So if
// it has not seen the hold for call n, we see at least n here, and hold beyond it.
std::uint64_t RelaxedCalls::hold(std::uint64_t now_ns, std::uint64_t horizon_ns) {
  const std::lock_guard lock(mutex_);
  std::uint64_t next = next_call_.load(std::memory_order_seq_cst);
  if (now_ns > mark_ns_ && mark_ns_ > 0) {
    const double pace =
        static_cast<double>(next - mark_call_) / static_cast<double>(now_ns - mark_ns_);
    next += static_cast<std::uint64_t>(std::min(pace * static_cast<double>(horizon_ns), 1e9));
  }
  std::uint64_t call = next + kBurstCalls;
  while (true) {
    held_ = call;
    hold_.store(decisions_.empty() ? call : 0, std::memory_order_seq_cst);
    const std::uint64_t seen = next_call_.load(std::memory_order_seq_cst);
    mark_call_ = seen;
    mark_ns_ = now_ns;
    if (seen < call) return call;
    call = seen + kBurstCalls;
  }
}

void RelaxedCalls::use(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  is_relaxed_ = is_relaxed_ || prepared_ != nullptr;
  decisions_.push_back({call, std::exchange(prepared_, nullptr)});
  doubts_before_ = counts_.doubts.load(std::memory_order_relaxed);
  mismatches_before_ = counts_.mismatches.load(std::memory_order_relaxed);
  held_ = kNever;
  hold_.store(0, std::memory_order_seq_cst);
}

void RelaxedCalls::drop() {
  const std::lock_guard lock(mutex_);
  prepared_.reset();
  held_ = kNever;
  hold_.store(decisions_.empty() ? kNever : 0, std::memory_order_seq_cst);
}

}  // namespace riffle
