#include "plugin/collective/relaxed/staged_averages.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "plugin/collective/relaxed/rules/trailer.h"
#include "plugin/config/log.h"
#include "plugin/kernels/types.h"

namespace riffle {
namespace {

bool is_in_background(const RelaxedRun& run, const CallPlace& place) {
  return run.mode() == SyncMode::kShadowSync && !place.is_full;
}

bool begins_round(const RelaxedRun& run, const CallPlace& place) {
  return is_in_background(run, place) && place.step % run.shadow_steps() == 0;
}

}  // namespace

bool StagedAverages::reserve(RelaxedRun& run, const CallPlace& place, StagedCall* call) {
  RelaxedRun::Position& position = run.position(place.position);
  collect(run, position);
  const bool is_alone = is_in_background(run, place) && !begins_round(run, place);
  if (is_alone || position.segments == 0) return true;
  if (position.round != RelaxedRun::kNone) {
    if (!std::exchange(is_waiting_, true)) counts_.waits.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  is_waiting_ = false;
  call->segment = run.take(position.segments);
  if (call->segment != RelaxedRun::kNone) return true;
  // Rounds that are over hold theirs until they are collected.
  for (RelaxedRun::Position& other : run.positions()) collect(run, other);
  return false;
}

// What is over of the position's background round.
void StagedAverages::collect(RelaxedRun& run, RelaxedRun::Position& position) {
  while (position.round != RelaxedRun::kNone) {
    RelaxedRun::Segment& segment = run.segment(position.round);
    const Operation::State state = segment.operation.state.load(std::memory_order_acquire);
    if (state == Operation::State::kRunning) return;
    has_failed_ |= state == Operation::State::kFailed;
    const rules::Verdict verdict = rules::read_trailer(segment.data + segment.count, nodes_);
    const rules::ShadowRule& rule = *run.shadow_rule();
    const rules::ShadowState s = position.shadow_state(segment.first);
    const std::uint64_t number = segment.first / position.segment_elements;
    const bool took_part = position.round_takes_part, was_due = position.is_due[number];
    const bool is_broken_off = segment.operation.nodes == 0;  // by a loss, for all nodes
    if (!is_broken_off && verdict.kind == rules::Verdict::Kind::kAverage) {
      position.is_due[number] =
          rule.end(s, took_part, was_due, {segment.data, verdict.members}, segment.count);
    } else {
      (is_broken_off ? counts_.broken_off : counts_.mismatches)
          .fetch_add(1, std::memory_order_relaxed);
      position.is_due[number] = rule.lost(s, took_part, was_due, segment.count);
    }
    const std::uint32_t next = segment.next;
    run.give_back(position.round);
    position.round = next;
  }
}

// Only this thread writes.
void StagedAverages::count_gap(std::uint64_t steps) {
  counts_.corrections.fetch_add(1, std::memory_order_relaxed);
  counts_.gap_steps.fetch_add(steps, std::memory_order_relaxed);
  if (steps > counts_.longest_gap.load(std::memory_order_relaxed)) {
    counts_.longest_gap.store(steps, std::memory_order_relaxed);
  }
}

rules::MomentumState StagedAverages::momentum_of(const RelaxedRun::Position& position,
                                                 std::uint64_t first) const {
  return {position.second + first, position.state + first, position.third + first};
}

void StagedAverages::stage(const CallShape& shape, const CallPlace& place, StagedCall* call) {
  RelaxedRun& run = *call->run;
  RelaxedRun::Position& position = run.position(place.position);
  const bool takes_part = call->takes_part;
  call->has_failed = has_failed_;
  counts_.calls.fetch_add(1, std::memory_order_relaxed);
  if (place.is_full) counts_.full_calls.fetch_add(1, std::memory_order_relaxed);

  const std::lock_guard lock(memory_.mutex);
  const auto type = static_cast<DataType>(shape.type);
  if (!takes_part && !memory_.is_fenced) {
    // What has no state here is passed on at once, the rest when the call is over.
    const std::uint64_t first = call->is_elsewhere ? 0 : position.piece.valid;
    const std::uint64_t at = first * size_of(type);
    rules::pass_on(call->send + at, nodes_, shape.count - first, type, call->recv + at);
  }
  if (is_in_background(run, place)) return step_alone(place, call);
  bool brings = false;
  std::uint32_t number = 0;
  for (std::uint32_t i = call->segment; i != RelaxedRun::kNone; ++number) {
    RelaxedRun::Segment& segment = run.segment(i);
    i = segment.next;
    segment.first = position.first_of(number);
    segment.count = position.count_of(number);
    const std::byte* g = call->send + segment.first * size_of(type);
    bool is_finite = true;
    if (!takes_part || memory_.is_fenced) {
      std::fill_n(segment.data, segment.count, 0.0F);
    } else if (run.momentum() > 0) {
      is_finite = rules::prepare_momentum(momentum_of(position, segment.first), g, type,
                                          segment.count, run.momentum(), segment.data);
    } else if (run.shadow_rule() != nullptr) {
      is_finite = run.shadow_rule()->prepare_full(position.shadow_state(segment.first),
                                                  position.is_due[number], g, type, segment.count,
                                                  segment.data);
      brings = brings || position.is_due[number];
    } else {
      is_finite =
          rules::prepare(position.state + segment.first, g, type, segment.count, segment.data);
    }
    post(run, segment, place, number, takes_part, is_finite, place.is_full);
  }
  if (brings) count_gap(place.step - position.round_step);
}

// shadow_sync: the answer is ready; a round may begin behind it.
void StagedAverages::step_alone(const CallPlace& place, StagedCall* call) {
  RelaxedRun& run = *call->run;
  RelaxedRun::Position& position = run.position(place.position);
  const auto type = static_cast<DataType>(position.piece.type);
  const rules::ShadowRule& rule = *run.shadow_rule();
  const bool may_bring = call->takes_part && position.round == RelaxedRun::kNone;
  bool brings = false;
  for (std::uint32_t n = 0; n < position.segments; ++n) {
    const bool is_due = may_bring && position.is_due[n];
    const std::uint64_t first = position.first_of(n), at = first * size_of(type);
    if (!memory_.is_fenced && !call->is_elsewhere) {
      rule.step(position.shadow_state(first), is_due, call->send + at, nodes_, type,
                position.count_of(n), call->recv + at);
    }
    if (is_due) position.is_due[n] = false;
    brings = brings || is_due;
  }
  if (brings) count_gap(place.step - position.round_step);
  if (!begins_round(run, place)) return;
  counts_.rounds.fetch_add(1, std::memory_order_relaxed);
  position.round = std::exchange(call->segment, RelaxedRun::kNone);
  position.round_step = place.step;
  position.round_takes_part = call->takes_part;
  std::uint32_t number = 0;
  for (std::uint32_t i = position.round; i != RelaxedRun::kNone; ++number) {
    RelaxedRun::Segment& segment = run.segment(i);
    i = segment.next;
    segment.first = position.first_of(number);
    segment.count = position.count_of(number);
    if (call->takes_part) {
      rule.begin(position.shadow_state(segment.first), segment.count, segment.data);
    } else {
      std::fill_n(segment.data, segment.count, 0.0F);
    }
    CallPlace round = place;
    round.step = place.step / run.shadow_steps();
    post(run, segment, round, number, call->takes_part, true, run.has_rounds_over_all());
  }
}

void StagedAverages::post(RelaxedRun& run, RelaxedRun::Segment& segment, const CallPlace& place,
                          std::uint32_t number, bool takes_part, bool is_finite, bool is_over_all) {
  const RelaxedRun::Position& position = run.position(place.position);
  const std::uint32_t digest = run.digest_of(place.position, number, place.step, place.is_full);
  rules::write_trailer({takes_part, is_finite, digest}, nodes_, segment.data + segment.count);
  Operation& o = segment.operation;
  o.type = DataType::kFloat32;
  o.op = ReduceOp::kSum;
  o.count = segment.count + run.trailer_elements();
  o.valid = o.count;
  o.send = o.recv = reinterpret_cast<std::byte*>(segment.data);
  o.is_average = true;
  o.nodes = nodes_;
  o.step = is_over_all ? Operation::kExact : static_cast<std::int64_t>(place.step);
  o.lane = static_cast<std::uint32_t>(position.first_lane + number);
  o.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  post_(&o);
}

Result<bool> StagedAverages::test(StagedCall* call) {
  RelaxedRun& run = *call->run;
  if (call->has_failed) {
    failed_.push_back(std::move(call->run));
    return remote_error("a background round failed");
  }
  while (call->segment != RelaxedRun::kNone) {
    RelaxedRun::Segment& segment = run.segment(call->segment);
    const Operation::State state = segment.operation.state.load(std::memory_order_acquire);
    if (state == Operation::State::kRunning) return false;
    if (state == Operation::State::kFailed) {
      // The communicator is over; the other segments are not needed any more.
      failed_.push_back(std::move(call->run));
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

void StagedAverages::finish(const StagedCall& call, RelaxedRun::Segment& segment) {
  RelaxedRun::Position& position = call.run->position(call.position);
  const auto type = static_cast<DataType>(position.piece.type);
  float* state = position.state + segment.first;
  std::byte* out = call.recv + segment.first * size_of(type);
  const rules::Verdict verdict = rules::read_trailer(segment.data + segment.count, nodes_);
  const std::lock_guard lock(memory_.mutex);
  if (memory_.is_fenced || call.is_elsewhere) return;
  const int nodes = segment.operation.nodes;
  if (nodes == 0) counts_.broken_off.fetch_add(1, std::memory_order_relaxed);
  if (nodes == 0 || !call.takes_part) return keep(call, segment, state);
  switch (verdict.kind) {
    case rules::Verdict::Kind::kAverage: {
      const bool resets = call.is_full && verdict.members == nodes;
      if (call.run->momentum() > 0) {
        const std::byte* g = call.send + segment.first * size_of(type);
        rules::finish_momentum(segment.data, verdict.members, nodes_, g, segment.count,
                               call.run->momentum(), resets, momentum_of(position, segment.first),
                               type, out);
        return;
      }
      if (const rules::ShadowRule* rule = call.run->shadow_rule(); rule != nullptr) {
        const std::uint64_t number = segment.first / position.segment_elements;
        rule->finish_full(position.shadow_state(segment.first), position.is_due[number],
                          {segment.data, verdict.members}, nodes_, resets, type, segment.count,
                          out);
        position.is_due[number] = false;
        return;
      }
      rules::finish(segment.data, verdict.members, nodes_, segment.count, resets, state, type, out);
      return;
    }
    case rules::Verdict::Kind::kKeep:
      counts_.mismatches.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(told_mismatch_, true)) {
        log_warn(
            "{}: the members of a group were not at the same call; they keep what is their "
            "own",
            name_of(call.run->mode()));
      }
      return keep(call, segment, state);
    case rules::Verdict::Kind::kNotFinite:
      counts_.not_finite.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(told_not_finite_, true)) {
        log_warn("{}: gradients that are not finite; all members of the group get them so",
                 name_of(call.run->mode()));
      }
      rules::fill_not_finite(segment.count, type, out);
      return;
  }
}

void StagedAverages::keep(const StagedCall& call, const RelaxedRun::Segment& segment,
                          float* state) {
  const RelaxedRun::Position& position = call.run->position(call.position);
  const auto type = static_cast<DataType>(position.piece.type);
  const std::uint64_t at = segment.first * size_of(type);
  if (call.run->momentum() > 0) {
    return rules::keep_momentum(call.send + at, nodes_, segment.count, call.run->momentum(),
                                momentum_of(position, segment.first), type, call.recv + at);
  }
  if (const rules::ShadowRule* rule = call.run->shadow_rule(); rule != nullptr) {
    return rule->step(position.shadow_state(segment.first), false, call.send + at, nodes_, type,
                      segment.count, call.recv + at);
  }
  rules::keep(call.send + at, nodes_, segment.count, state, type, call.recv + at);
}

}  // namespace riffle
