// RelaxedCalls: the relaxed modes of one communicator, between COLLNET's calls and the engine
// (docs/policies.md).
//
// Every all-reduce comes here first. While no mode runs, it is only looked at: the layout learns
// the repeating sequence of calls. When all nodes agreed on a mode (sync_agreement.h), a call that
// belongs to a large sum of gradients is staged: z = y + g goes into memory of our own (y: the
// state kept per element), its group sums z and a trailer, and when NCCL asks for the result the
// trailer says what to make of it.
//
//   all of one mind:  m = sum / how many took part; output N (m - y); y <- m
//   not of one mind:  output N g; y <- y + g: a contribution is averaged and replaced, or kept
//   not finite:       output not a number for all members; y stays
//
// Every settings.full_every steps the sum is over all nodes, and y <- 0: the same for everybody,
// which changes nothing but keeps y small. So does the last step of a mode.
//
// shadow_sync answers at once: output N (g + what the last background round brought), y <- y +
// output / N. Every settings.shadow_steps steps it begins a round, through the groups or over all
// nodes. What a round sends and brings is the affair of a rule (shadow_rule.h): mean minus snapshot
// of y, by default. Rounds do not overlap: one that takes longer than that is waited for.
//
// sparse (docs/sparse.md): a call's segments are sparse exchanges (sparse_runner.h) straight from
// and to the job's memory; the result is the same on all nodes. What was not delivered stays in
// residuals. The last step of the mode delivers all of them; where the calls change, so that there
// is no last step, each residual goes into the next exact sum of the element that it belongs to.
//
// A call whose identity is not certain keeps out: it contributes nothing (weight 0) and keeps its
// own, all of it, for it may hold more valid elements than the call whose place it has. A call that
// leaves the agreed sequence (count, datatype, operator) ends the mode: every node sees that at the
// same call.
//
// Threads: all_reduce(), test() on NCCL's progress thread; fence() on its service thread; the
// ModeParticipant's functions on the reactor (prepare(): in the Background). A call takes no lock
// but one that nobody holds for long, and allocates nothing but where the layout does.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugin/collective/base/mode_participant.h"
#include "plugin/collective/relaxed/relaxed_run.h"
#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/identity/call_identity.h"
#include "plugin/identity/layout.h"
#include "plugin/telemetry/comm_record.h"

namespace riffle {

// A staged call, from all_reduce() until test() says that it is over.
struct StagedCall {
  std::shared_ptr<RelaxedRun> run;  // null: nothing is staged
  std::size_t position = 0;
  std::uint32_t segment = RelaxedRun::kNone;  // the first that is not over
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  const std::byte* kept = nullptr;  // as Operation::kept; the poster's, set before all_reduce()
  bool takes_part = false;
  bool is_elsewhere = false;  // surely not the call of its place: the place's state is not its own
  bool is_full = false;
  bool has_failed = false;
  // Not staged, but to be run exactly, on this in place of what the job sends: with residuals of a
  // sparse mode that has ended added. Empty: as it is.
  std::vector<std::byte> input;
};

// Totals since the communicator began. Any thread reads.
struct RelaxedCounts {
  std::atomic<std::uint64_t> calls{0};       // staged
  std::atomic<std::uint64_t> full_calls{0};  // ... over all nodes
  std::atomic<std::uint64_t> doubts{0};      // kept out as their identity was not certain
  std::atomic<std::uint64_t> mismatches{0};  // kept as the group was not of one mind
  std::atomic<std::uint64_t> not_finite{0};
  std::atomic<std::uint64_t> broken_off{0};   // segments that a loss left as each node's own
  std::atomic<std::uint64_t> deviations{0};   // modes that ended as the calls changed
  std::atomic<std::uint64_t> rounds{0};       // shadow_sync: in the background, per call
  std::atomic<std::uint64_t> waits{0};        // ... that were waited for
  std::atomic<std::uint64_t> corrections{0};  // ... whose result was added to an answer
  std::atomic<std::uint64_t> gap_steps{0};    // ... steps from snapshot to correction, of all
  std::atomic<std::uint64_t> longest_gap{0};  // ... and the most
  // sparse: residuals that went into exact sums, and that found none to go into.
  std::atomic<std::uint64_t> brought{0}, lost{0};
  SparseWork sparse;
};

class RelaxedCalls final : public ModeParticipant {
 public:
  struct Hooks {
    std::function<CallIdentity(const CallShape&)> identify;  // plugin/identity/identity.h
    std::function<void(Operation*)> post;                    // to the engine
  };
  RelaxedCalls(RelaxedOptions options, Hooks hooks);
  ~RelaxedCalls() override;

  enum class Answer {
    kExact,   // not ours: run it exactly
    kStaged,  // it runs; test() finishes it
    kBusy,    // call again
  };
  // NCCL's next all-reduce on this communicator; must be run if the answer is not kBusy.
  Answer all_reduce(const CallShape& shape, StagedCall* call);
  // True when over. Once after an error nothing of the call is in use any more.
  Result<bool> test(StagedCall* call);
  // Returns when neither function touches the job's memory any more; staged calls fail from now on.
  void fence();

  const RelaxedCounts& counts() const { return counts_; }
  // The sequence of calls; null: not known. Any thread.
  std::shared_ptr<const KnownCalls> known() const {
    const std::lock_guard lock(mutex_);
    return known_;
  }
  SparseWork* sparse_work() { return &counts_.sparse; }
  // For tests, on NCCL's progress thread while no call is under way: what runs, and what a sparse
  // mode left behind. Null: nothing.
  RelaxedRun* run() const { return run_.get(); }
  RelaxedRun* owing() const { return owing_.get(); }
  RelaxedTotals totals() const;  // the same, for the record

  SyncReport report() override;
  Status prepare(const ModeOrder& order) override;
  std::uint64_t hold(std::uint64_t now_ns, std::uint64_t horizon_ns) override;
  void use(std::uint64_t call) override;
  void drop() override;
  ModeSpan span() override;
  Status catch_up(const ModeSpan& span, int place, int nodes) override;

 private:
  static constexpr std::uint64_t kNever = ~0ull;
  struct Place {  // of a call in the running mode
    std::size_t position = 0;
    std::uint64_t step = 0;
    bool is_full = false;
  };

  struct Decision {
    std::uint64_t call = 0;
    std::shared_ptr<RelaxedRun> run;  // null: exact sums
  };

  bool take_decisions();
  bool locate(std::uint64_t number, const CallShape& shape, Place* place);
  void learn(const CallShape& shape, const CallIdentity& identity);
  void doubt(const char* why);
  bool is_certain(const Layout::Piece& piece, const CallShape& shape,
                  const CallIdentity& identity) const;
  bool reserve(const Place& place, StagedCall* call);
  bool is_in_background(const Place& place) const;
  bool begins_round(const Place& place) const;
  void collect(RelaxedRun& run, RelaxedRun::Position& position);
  void count_gap(std::uint64_t steps);
  void stage(const CallShape& shape, const Place& place, bool takes_part, StagedCall* call);
  void step_alone(const Place& place, StagedCall* call);
  void post(RelaxedRun& run, RelaxedRun::Segment& segment, const Place& place, std::uint32_t number,
            bool takes_part, bool is_finite, bool is_over_all);
  rules::MomentumState momentum_of(const RelaxedRun::Position& position, std::uint64_t first) const;
  void finish(const StagedCall& call, RelaxedRun::Segment& segment);
  void keep(const StagedCall& call, const RelaxedRun::Segment& segment, float* state);
  void end_mode();
  bool reserve_sparse(const RelaxedRun::Position& position) const;
  void stage_sparse(const CallShape& shape, const Place& place, bool takes_part, StagedCall* call);
  Result<bool> test_sparse(StagedCall* call);
  void count_outcome(SparseSegment::Outcome outcome);
  void bring_residual(const CallShape& shape, const CallIdentity& identity, StagedCall* call);
  void give_up_residuals();
  void decide(std::uint64_t call);
  void drop_prepared();

  const RelaxedOptions options_;
  const Hooks hooks_;
  RelaxedCounts counts_;

  // NCCL's progress thread only.
  Layout layout_;
  std::shared_ptr<RelaxedRun> run_;
  std::vector<std::shared_ptr<RelaxedRun>> ended_;  // with rounds still under way
  bool has_failed_ = false;
  bool is_waiting_ = false;            // for a round
  std::size_t sparse_under_way_ = 0;   // segments
  std::shared_ptr<RelaxedRun> owing_;  // a sparse mode that has ended, with residuals left
  std::uint64_t from_call_ = kNever;   // it begins with the first step from here on
  std::uint64_t first_call_ = kNever;  // ... which was this one
  std::uint64_t ends_from_ = kNever;   // the first step that begins here or later is its last one
  std::uint64_t last_step_ = kNever;
  bool told_doubt_ = false, told_mismatch_ = false, told_not_finite_ = false;

  std::atomic<std::uint64_t> next_call_{0};
  // Calls from here on wait; written under the mutex. 0: there are decisions to take.
  std::atomic<std::uint64_t> hold_{kNever};

  std::mutex memory_mutex_;  // while the job's memory is touched
  bool is_fenced_ = false;   // guarded by memory_mutex_

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<const KnownCalls> known_;
  std::uint64_t steady_steps_ = 0;
  const char* why_not_ = "";
  bool is_relaxed_ = false;               // it runs, or is going to
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
