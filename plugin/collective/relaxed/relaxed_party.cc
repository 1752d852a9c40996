// The reactor's side of relaxed calls: how this node takes part in agreeing on a mode.
#include <algorithm>
#include <utility>

#include "plugin/collective/relaxed/relaxed_calls.h"

namespace riffle {
namespace {

// Calls that may come at once, whatever the pace was.
constexpr std::uint64_t kBurstCalls = 16;

}  // namespace

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
  RelaxedOptions options = options_;
  {
    const std::lock_guard lock(mutex_);
    if (order.mode == SyncMode::kSparse) {  // its exchanges are among those that are left
      options.rank = place_;
      options.size = nodes_;
    }
    known = known_;
    if (is_relaxed_) return invalid_argument("a mode runs already");
  }
  if (known == nullptr) return invalid_argument("its calls do not repeat");
  Result<std::shared_ptr<RelaxedRun>> run = RelaxedRun::make(order, *known, options);
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
  decide(call);
}

void RelaxedCalls::decide(std::uint64_t call) {
  if (prepared_ != nullptr) {
    span_ = {call, ModeSpan::kNone};
  } else if (span_.end == ModeSpan::kNone) {
    span_.end = call;
  }
  is_relaxed_ = is_relaxed_ || prepared_ != nullptr;
  decisions_.push_back({call, std::exchange(prepared_, nullptr)});
  doubts_before_ = counts_.doubts.load(std::memory_order_relaxed);
  mismatches_before_ = counts_.mismatches.load(std::memory_order_relaxed);
  held_ = kNever;
  hold_.store(0, std::memory_order_seq_cst);
}

void RelaxedCalls::drop() {
  const std::lock_guard lock(mutex_);
  drop_prepared();
}

void RelaxedCalls::drop_prepared() {
  prepared_.reset();
  held_ = kNever;
  hold_.store(decisions_.empty() ? kNever : 0, std::memory_order_seq_cst);
}

ModeSpan RelaxedCalls::span() {
  const std::lock_guard lock(mutex_);
  return span_;
}

// Who has not heard a decision has promised to take no call that it concerns, and keeps to that
// until now; so it is not too late.
Status RelaxedCalls::catch_up(const ModeSpan& span, int place, int nodes) {
  const std::lock_guard lock(mutex_);
  place_ = place;
  nodes_ = nodes;
  const bool is_news =
      span.begin != ModeSpan::kNone && (span_.begin == ModeSpan::kNone || span.begin > span_.begin);
  if (is_news) {
    if (prepared_ == nullptr || held_ > span.begin) {
      return remote_error("a mode from call " + std::to_string(span.begin) +
                          " on, which this node has not promised to wait for");
    }
    decide(span.begin);
  }
  prepared_.reset();
  if (span.begin == span_.begin && span.end != ModeSpan::kNone && span_.end == ModeSpan::kNone) {
    decide(span.end);
  }
  drop_prepared();
  return Status::ok();
}

}  // namespace riffle
