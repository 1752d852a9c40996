// RelaxedCalls: the relaxed modes of one communicator, between COLLNET's calls and the engine
// (docs/policies.md).
//
// Every all-reduce comes here first. While no mode runs, it is only looked at: the layout learns
// the repeating sequence of calls. When all nodes agreed on a mode (sync_agreement.h), a call that
// belongs to a large sum of gradients is staged: z = y + g goes into memory of our own (y: the
// state kept per element), its group sums z and a trailer, and when NCCL asks for the result the
// trailer says what to make of it.
//
//   digests match:   m = sum / how many took part; output N (m - y); y <- m
//   digests differ:  output N g; y <- y + g: a contribution is averaged and replaced, or kept
//   not finite:      output not a number for all members; y stays
//
// Every settings.full_every steps the sum is over all nodes, and y <- 0: the same on all nodes,
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
// narrow (RIFFLE_WIRE; narrow_calls.h): a call's sum over all nodes travels in fewer bits.
//
// A call whose identity is not certain keeps out: it contributes nothing (weight 0) and keeps its
// own, all of it, for it may hold more valid elements than the call whose place it has. A call that
// leaves the agreed sequence (count, datatype, operator) ends the mode: every node sees that at the
// same call.
//
// Threads: all_reduce(), test() on NCCL's progress thread; fence() on its service thread; the
// participant's functions as mode_decisions.h says. A call takes no lock but ones that are held for
// a short time, and allocates nothing but where the layout does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plugin/collective/relaxed/mode_decisions.h"
#include "plugin/collective/relaxed/narrow_calls.h"
#include "plugin/collective/relaxed/relaxed_counts.h"
#include "plugin/collective/relaxed/relaxed_run.h"
#include "plugin/collective/relaxed/sparse_calls.h"
#include "plugin/collective/relaxed/staged_averages.h"
#include "plugin/collective/relaxed/staged_call.h"
#include "plugin/identity/call_identity.h"
#include "plugin/identity/layout.h"

namespace riffle {

class RelaxedCalls {
 public:
  struct Hooks {
    std::function<CallIdentity(const CallShape&)> identify;  // plugin/identity/identity.h
    PostOperation post;
  };
  RelaxedCalls(RelaxedOptions options, Hooks hooks);

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
  void fence() { memory_.fence(); }

  // For the agreement on a mode.
  ModeParticipant* participant() { return &decisions_; }
  // The sequence of calls; null: not known. Any thread.
  std::shared_ptr<const KnownCalls> known() const { return decisions_.known(); }

  const RelaxedCounts& counts() const { return counts_; }
  SparseWork* sparse_work() { return &counts_.sparse; }
  // For tests, on NCCL's progress thread while no call is under way: what runs, and what a sparse
  // mode left behind. Null: nothing.
  RelaxedRun* run() const { return run_.get(); }
  RelaxedRun* owing() const { return sparse_.owing(); }

 private:
  static constexpr std::uint64_t kNever = ModeDecisions::kNever;

  bool take_decisions();
  bool locate(std::uint64_t number, const CallShape& shape, CallPlace* place);
  void learn(const CallShape& shape, const CallIdentity& identity);
  void doubt(const char* why);
  bool is_certain(const Layout::Piece& piece, const CallShape& shape,
                  const CallIdentity& identity) const;
  bool reserve(const CallPlace& place, StagedCall* call);
  void end_mode();

  const RelaxedOptions options_;
  const std::function<CallIdentity(const CallShape&)> identify_;
  RelaxedCounts counts_;
  JobMemory memory_;
  ModeDecisions decisions_;
  StagedAverages averages_;
  SparseCalls sparse_;
  NarrowCalls narrow_;

  Layout layout_;
  std::shared_ptr<RelaxedRun> run_;
  std::vector<std::shared_ptr<RelaxedRun>> ended_;  // with rounds still under way
  std::uint64_t from_call_ = kNever;                // it begins with the first step from here on
  std::uint64_t first_call_ = kNever;               // ... which was this one
  std::uint64_t ends_from_ = kNever;  // the first step that begins here or later is its last one
  std::uint64_t last_step_ = kNever;
  bool told_doubt_ = false;
};

}  // namespace riffle
