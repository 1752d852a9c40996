#include "plugin/collective/relaxed/mode_decisions.h"

#include <algorithm>
#include <utility>

namespace riffle {
namespace {

// Calls that may come at once, whatever the pace was.
constexpr std::uint64_t kBurstCalls = 16;

}  // namespace

ModeDecisions::ModeDecisions(const RelaxedOptions& options, const RelaxedCounts& counts)
    : options_(options), counts_(counts), place_(options.rank), nodes_(options.size) {}

// -------------------------------------------------------------------------- NCCL's progress thread

std::deque<ModeDecisions::Decision> ModeDecisions::take_over(bool* may_go) {
  const std::lock_guard lock(mutex_);
  hold_.store(held_, std::memory_order_seq_cst);
  *may_go = next_call() < held_;
  return std::exchange(decisions_, {});
}

void ModeDecisions::count_call() { next_call_.store(next_call() + 1, std::memory_order_seq_cst); }

void ModeDecisions::learned(std::uint64_t steady_steps, std::uint64_t digest,
                            const std::function<KnownCalls()>& calls) {
  const std::lock_guard lock(mutex_);
  steady_steps_ = steady_steps;
  if (known_ == nullptr || known_->digest != digest) {
    known_ = std::make_shared<const KnownCalls>(calls());
  }
}

void ModeDecisions::calls_changed() {
  const std::lock_guard lock(mutex_);
  known_.reset();
  steady_steps_ = 0;
  why_not_ = "the calls changed";
}

void ModeDecisions::note_doubt(const char* why) {
  const std::lock_guard lock(mutex_);
  why_not_ = why;
}

void ModeDecisions::mode_ended() {
  const std::lock_guard lock(mutex_);
  is_relaxed_ = std::any_of(decisions_.begin(), decisions_.end(),
                            [](const Decision& d) { return d.run != nullptr; });
}

// ----------------------------------------------------------------------------------------- reactor

SyncReport ModeDecisions::report() {
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

Result<ModeParticipant::Take> ModeDecisions::make(const ModeOrder& order) {
  const auto take = [this](std::shared_ptr<RelaxedRun> run) -> Take {
    return [this, run = std::move(run)] {
      const std::lock_guard lock(mutex_);
      prepared_ = run;
    };
  };
  if (order.mode == SyncMode::kExact) return take(nullptr);
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
  return take(std::move(*run));
}

// No call from the answer on has begun, nor will it: the caller's thread stores hold_ and then
// reads next_call_, the other one stores next_call_ and then reads hold_, all in one order. So if
// it has not seen the hold for call n, we see at least n here, and hold beyond it.
std::uint64_t ModeDecisions::hold(std::uint64_t now_ns, std::uint64_t horizon_ns) {
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

void ModeDecisions::use(std::uint64_t call) {
  const std::lock_guard lock(mutex_);
  decide(call);
}

void ModeDecisions::decide(std::uint64_t call) {
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

void ModeDecisions::drop() {
  const std::lock_guard lock(mutex_);
  drop_prepared();
}

void ModeDecisions::drop_prepared() {
  prepared_.reset();
  held_ = kNever;
  hold_.store(decisions_.empty() ? kNever : 0, std::memory_order_seq_cst);
}

ModeSpan ModeDecisions::span() {
  const std::lock_guard lock(mutex_);
  return span_;
}

// A node that has not heard a decision has promised to take no call that it concerns, and keeps to
// that until now; so it is not too late.
Status ModeDecisions::catch_up(const ModeSpan& span, int place, int nodes) {
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
