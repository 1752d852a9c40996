// ModeDecisions: how the calls of one communicator take part in agreeing on a mode
// (sync_agreement.h), and what was agreed, until the calls' thread takes it over.
//
// Threads: the ModeParticipant's functions on the reactor (make(): in the Background); known()
// on any; all others on NCCL's progress thread. A call takes the lock only where there is something
// to tell or to take over.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "plugin/collective/base/mode_participant.h"
#include "plugin/collective/relaxed/relaxed_counts.h"
#include "plugin/collective/relaxed/relaxed_run.h"

namespace riffle {

class ModeDecisions final : public ModeParticipant {
 public:
  static constexpr std::uint64_t kNever = ~0ull;
  struct Decision {
    std::uint64_t call = 0;           // from the first step on that begins here or later
    std::shared_ptr<RelaxedRun> run;  // null: exact sums
  };
  // Both must outlive this; `options` are those of connect.
  ModeDecisions(const RelaxedOptions& options, const RelaxedCounts& counts);

  // The number of the next call.
  std::uint64_t next_call() const { return next_call_.load(std::memory_order_relaxed); }
  // May it not be taken as it is: is it held, or are there decisions to take over?
  bool is_held() const { return next_call() >= hold_.load(std::memory_order_seq_cst); }
  // The decisions so far, the oldest first; and whether the next call may be taken after them.
  std::deque<Decision> take_over(bool* may_go);
  void count_call();

  // What the calls are known as, for the agreement.
  void learned(std::uint64_t steady_steps, std::uint64_t digest,
               const std::function<KnownCalls()>& calls);
  void calls_changed();
  void note_doubt(const char* why);
  // A mode has ended here by itself.
  void mode_ended();
  // The sequence of calls; null: not known.
  std::shared_ptr<const KnownCalls> known() const {
    const std::lock_guard lock(mutex_);
    return known_;
  }

  SyncReport report() override;
  Result<Take> make(const ModeOrder& order) override;
  std::uint64_t hold(std::uint64_t now_ns, std::uint64_t horizon_ns) override;
  void use(std::uint64_t call) override;
  void drop() override;
  ModeSpan span() override;
  Status catch_up(const ModeSpan& span, int place, int nodes) override;

 private:
  void decide(std::uint64_t call);
  void drop_prepared();

  const RelaxedOptions& options_;
  const RelaxedCounts& counts_;

  std::atomic<std::uint64_t> next_call_{0};
  // Calls from here on wait; written under the mutex. 0: there are decisions to take over.
  std::atomic<std::uint64_t> hold_{kNever};

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<const KnownCalls> known_;
  std::uint64_t steady_steps_ = 0;
  const char* why_not_ = "";
  bool is_relaxed_ = false;               // a mode runs, or is going to
  std::shared_ptr<RelaxedRun> prepared_;  // null for an order of exact sums
  std::deque<Decision> decisions_;        // not yet taken over; the oldest first
  std::uint64_t held_ = kNever;           // what was promised
  std::uint64_t doubts_before_ = 0, mismatches_before_ = 0;
  ModeSpan span_;
  int place_, nodes_;  // this node among those that are left

  // Reactor only: the pace of calls.
  std::uint64_t mark_call_ = 0, mark_ns_ = 0;
};

}  // namespace riffle
