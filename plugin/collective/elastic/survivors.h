// Survivors: RIFFLE_ON_LOSS=continue. The work of a communicator that goes on when nodes are lost.
//
// Terms: the nodes that work together, an engine, a control channel and replanning intervals over a
// mesh of just them (member_mesh.h). A loss ends the term (regroup.h): everybody freezes, those who
// go on plan for the network that is left, wait for each other's last frames and begin a new term.
//
// Operations: one is reported done only when all nodes of the term have its result. Each node tells
// its parent in a tree (kFanOut children) below which number its subtree has all results, the root
// tells everybody below which number all have: one frame without payload for as many operations as
// are done, behind nobody. So after a loss nothing has to be handed over: whatever anybody reported
// is in everybody's memory. Operations that all survivors have finished are over; all others begin
// again from their inputs, which nobody has touched: where an operation works in place, its poster
// keeps a copy (Operation::kept). Their sums are multiplied by all / survivors where that is wanted
// and makes sense.
//
// Modes (relaxed_calls.h): averages that were under way are over, not averaged, on all survivors:
// each keeps what is its own. Sparse segments get their state back as it was before the call, and
// begin again as dense sums of gradients and residuals. A mode goes on; where one was about to
// begin or to end, what any survivor knows to be decided holds for all.
//
// A node that leaves says goodbye to everybody: what is over, and the number of its last operation.
// If all of its operations are over it goes at once, for nobody needs it for anything. In
// shadow_sync a job may be through while rounds of its own are under way, whose results it will
// never ask for; others have yet to begin them. Then it lingers: it goes on with those until all
// have them, and goes then. It takes no part in any agreement on who goes on (regroup.h): if there
// is one, those rounds are given up anyway, and it goes. So the others never fall below a quorum
// because slower nodes are fewer than those that have finished, and an operation behind its last
// one does not wait for it.
//
// Slow nodes (RIFFLE_MIN_RATE): node 0 of the term sends them away (slow_nodes.h), which is a loss
// as any other.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/collective/base/background.h"
#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/elastic/done_frame.h"
#include "plugin/collective/elastic/member_mesh.h"
#include "plugin/collective/elastic/recovery_messages.h"
#include "plugin/collective/elastic/regroup.h"
#include "plugin/collective/engine/engine.h"
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/telemetry/comm_record.h"
#include "plugin/transport/base/timer_service.h"

namespace riffle {

struct SurvivorOptions {
  bool is_on = false;
  bool rescales = true;  // sums of floating-point numbers, by all / survivors
  std::uint64_t patience_ns = Regroup::Options().patience_ns;
  // Tests only, to see that they would notice: operations are over as soon as the root has them;
  // residuals do not come back; a node finishes averages that were under way if it had them.
  bool plants_early_end = false, plants_spent_residual = false, plants_own_average = false;
};

class Survivors {
 public:
  static constexpr int kFanOut = 8;
  static constexpr std::uint32_t kBasis = 50;  // in a term's control channel
  static constexpr std::uint32_t kFinished =
      51;  // outside of terms, a goodbye: what is over, and the last operation
  static bool is_mine(std::uint32_t kind) { return Regroup::is_mine(kind) || kind == kFinished; }

  struct Options {
    SurvivorOptions survivors;
    EngineOptions engine;
    ReplanOptions replan;
    std::uint64_t peer_timeout_ns = 0;
    std::optional<SparseRunner::Options> sparse;  // where the sparse mode is wanted
  };
  struct Hooks {
    std::function<void(int peer, std::uint32_t kind, std::vector<std::uint8_t>)> send;
    std::function<PlanBasis()> basis;  // node 0
    ReplanHooks replan;
    std::function<std::string(int node)> name_of;
    // A loss was survived; `what`: a line for people.
    std::function<void(const LossRecord& loss, const std::string& what)> went_on;
    // A peer broke the protocol, which is nobody's loss but everybody's error.
    std::function<void(int peer, const Status&)> violation;
    // This node cannot go on; it has told the others.
    std::function<void(const std::string& why)> ended;
  };

  // All must outlive this; `background` may be null, then planning happens in place.
  Survivors(Mesh* mesh, TimerService* timers, Background* background, Options options, Hooks hooks);
  ~Survivors();
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  void use_lengths(bool is_on) { uses_lengths_ = is_on; }  // lengths.h; before install()
  Status install(const PlanSet& plans);                    // the plan of connect
  void start(const PlanSet& plans);                        // connect is over; node 0 gives the plan
  void submit(Operation* operation);
  // All operations fail, nothing is sent any more.
  void fail();
  // The others hear that this node is gone, and go on.
  void leave(const std::string& why) {
    if (is_started_) regroup_.leave(why);  // before, not everybody is there to hear it
  }
  // The job is through, and waits for none of the operations that are under way. True: others need
  // them; end() when is_needed() no longer says so, or when there is no more patience.
  bool retire();
  bool is_needed() const { return is_retired_ && !is_useless_ && !has_failed_ && !is_idle(); }
  // The end. True if others may hear a goodbye: all is over, or it was retired.
  bool end();

  // As FrameSink, for frames that carry a term's mark, and cookies with kTermCookie.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header);
  void arrived(int peer, const FrameHeader& header, std::byte* payload);
  void sent(int peer, std::uint64_t cookie);
  void lost(int peer, const std::string& why);
  void departed(int peer);
  // Messages outside of terms.
  void received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message);

  bool has_failed() const { return has_failed_; }
  bool is_idle() const { return posted_ == released_; }
  const Membership& membership() const { return regroup_.membership(); }

 private:
  struct Entry {
    Operation* user = nullptr;   // the poster's
    Operation inner;             // the engine's
    bool has_begun = false;      // in any term
    bool is_broken_off = false;  // an average that nobody makes any more
  };
  // A frame of kDone: who tells whom.
  struct Term;

  Entry& entry(std::uint64_t number) { return entries_[number % entries_.size()]; }
  Status make_term(const Membership& members, const PlanSet& plans, std::unique_ptr<Term>* made);
  bool is_of_term(int peer, const FrameHeader& header) const;
  void begin(std::uint64_t number);
  void begin_sparse(Entry& e, bool again);
  void scale(const Operation& inner, const Operation& user) const;
  std::string objection(const Operation& operation) const;
  void advance();
  void tell_done();
  void say_goodbye();
  void hear_goodbye(int peer, const std::vector<std::uint8_t>& message);
  void ask_about_those_who_left();
  void release(std::uint64_t below);
  void gone(int peer, const std::string& why, bool may_wait);
  void give_up(int peer, const std::string& why);
  void hear_over(int peer, std::uint64_t below);
  void hear_done(int peer, const FrameHeader& header);
  void send_done(int place, DoneFrame::Way way, std::uint64_t below);
  void term_message(int place, std::uint32_t kind, const std::vector<std::uint8_t>& message);
  void take_early();
  void take_basis(const std::vector<std::uint8_t>& message);

  // survivors_slow.cc: RIFFLE_MIN_RATE. Node 0 of the term.
  void too_slow(const std::vector<SlowNode>& places);
  void forget_slow();

  // survivors_recovery.cc: the steps of regroup.
  Regroup::Steps steps();
  void freeze();
  Regroup::Bytes account();
  PlanBasis basis_of(const Membership& members) const;
  void plan(const Membership& next, const std::vector<Regroup::Bytes>& accounts,
            const std::function<void(Result<Regroup::Bytes>)>& planned);
  void install(const Regroup::Verdict& verdict, const std::vector<std::uint64_t>& frames,
               const std::function<void(Status)>& installed);
  void check_drained();
  void go(const Regroup::Verdict& verdict);
  void ended(const std::string& why);
  LossRecord loss_between(const Membership& before, const Membership& now) const;
  std::string describe(const LossRecord& loss) const;

  Mesh* const mesh_;
  TimerService* const timers_;
  Background* const background_;
  const Options options_;
  const Hooks hooks_;
  Regroup regroup_;
  TermTraffic traffic_;
  std::unique_ptr<SlotMemory> discard_;        // where payloads of former terms go
  std::unique_ptr<Term> term_;                 // the one that runs or ran last
  std::unique_ptr<Term> next_;                 // that was accepted, or waits for old frames
  std::vector<std::unique_ptr<Term>> former_;  // whose frames may still be under way
  bool is_started_ = false, is_frozen_ = false, has_failed_ = false, uses_lengths_ = false;
  bool is_retired_ = false, is_useless_ = false;  // useless: the others go on without this one

  std::vector<Entry> entries_;
  std::uint64_t posted_ = 0, done_ = 0, released_ = 0;
  std::uint64_t begun_ = 0;        // in any term
  std::uint64_t begun_below_ = 0;  // averages below were under way at the last loss

  std::optional<PlanBasis> basis_;  // of connect, all nodes
  std::optional<RecoveryOrder> order_;
  std::vector<std::uint64_t> frames_;  // to wait for, per member of next_
  std::function<void(Status)> installed_;
  std::uint64_t frozen_ns_ = 0;
  bool anybody_departed_ = false;
  // By node: how many operations it has, if it has said goodbye.
  std::vector<std::uint64_t> last_of_;
  // Losses that nobody minds until there is something to do.
  std::vector<std::pair<int, std::string>> deferred_;
  std::string end_reason_;  // likewise
  std::optional<std::uint64_t> slow_timer_;
  bool said_too_many_ = false, said_it_stays_ = false;
};

}  // namespace riffle
