// Survivors: RIFFLE_ON_LOSS=continue. The nodes of a communicator that go on when others are lost.
//
// Terms (term.h): the nodes that work together, and their work. A loss ends the term (regroup.h):
// all nodes freeze, those that go on plan for the network that is left, wait for each other's last
// frames and begin a new term.
//
// Operations: one is reported done only when all nodes of the term have its result (completion.h).
// So after a loss nothing has to be handed over: whatever any node reported is in the memory of
// all. Operations that all survivors have finished are over; all others begin again from their
// inputs, which are as they were: where an operation works in place, its poster keeps a copy
// (Operation::kept). Their sums are multiplied by all / survivors where that is wanted and makes
// sense.
//
// Modes (relaxed_calls.h): averages that were under way are over, not averaged, on all survivors:
// each keeps what is its own. Sparse segments get their state back as it was before the call, and
// begin again as dense sums of gradients and residuals. A mode goes on; where one was about to
// begin or to end, what any survivor knows to be decided holds for all.
//
// A node that leaves says goodbye to all others: what is over, and the number of its last
// operation. If all of its operations are over it closes at once, for no other node needs it. In
// shadow_sync a job may have ended while rounds of its own are under way, whose results it will
// never ask for; others have yet to begin them. Then its close is deferred: it goes on with those
// until all have them. It takes no part in any agreement on which nodes go on (regroup.h): if there
// is one, those rounds are given up anyway, and it closes. So the others never fall below a quorum
// because slower nodes are fewer than those that have finished, and an operation behind its last
// one does not wait for it.
//
// Slow nodes (RIFFLE_MIN_RATE): node 0 of the term sends them away (slow_expulsion.h), which is a
// loss as any other.
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

#include "plugin/collective/base/background.h"
#include "plugin/collective/elastic/done_frame.h"
#include "plugin/collective/elastic/members.h"
#include "plugin/collective/elastic/regroup.h"
#include "plugin/collective/elastic/slow_expulsion.h"
#include "plugin/collective/elastic/succession.h"
#include "plugin/collective/elastic/survivor_options.h"
#include "plugin/collective/elastic/term.h"

namespace riffle {

class Survivors final : public Members {
 public:
  static constexpr std::uint32_t kBasis = 50;  // in a term's control channel
  // Outside of terms, a goodbye: what is over, and the last operation.
  static constexpr std::uint32_t kFinished = 51;

  struct Options {
    SurvivorOptions survivors;
    MemberWork::Options work;
    std::uint64_t peer_timeout_ns = 0;
  };

  // All must outlive this; `background` may be null, then planning happens in place.
  Survivors(Mesh* mesh, TimerService* timers, Background* background, Options options,
            MemberHooks hooks);

  Status install(const PlanSet& plans, bool knows_lengths) override;
  void start(const PlanSet& plans) override;
  void submit(Operation* operation) override;
  void fail() override;
  void leave(const std::string& why) override {
    if (is_started_) regroup_.leave(why);  // before, not all nodes are there to hear it
  }
  bool retire() override;
  bool is_needed() const override {
    return is_retired_ && !is_useless_ && !has_failed_ && !is_idle();
  }
  bool end() override;

  // Frames that carry a term's mark, and cookies with kTermCookie.
  bool owns_message(const FrameHeader& header) const override { return header.term != 0; }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;
  void lost(int peer, const std::string& why) override;
  void departed(int peer) override;
  bool is_mine(std::uint32_t kind) const override {
    return Regroup::is_mine(kind) || kind == kFinished;
  }
  void received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) override;

  std::optional<std::vector<int>> waits_for() const override;
  bool has_failed() const override { return has_failed_; }
  const Membership& membership() const override { return regroup_.membership(); }

 private:
  struct Entry {
    Operation* user = nullptr;   // the poster's
    Operation inner;             // the engine's
    bool has_begun = false;      // in any term
    bool is_broken_off = false;  // an average that is not made any more
  };

  bool is_idle() const { return posted_ == released_; }
  Entry& entry(std::uint64_t number) { return entries_[number % entries_.size()]; }

  // Begin and end.
  Status make_term(const Membership& members, const PlanSet& plans, std::unique_ptr<Term>* made);
  bool is_of_term(int peer, const FrameHeader& header) const;
  void term_message(const Term::Message& message);
  void take_basis(const std::vector<std::uint8_t>& message);
  void say_goodbye();
  void hear_goodbye(int peer, const std::vector<std::uint8_t>& message);
  void give_up_nodes_that_ended_before();
  void gone(int peer, const std::string& why, bool may_wait);
  void give_up(int peer, const std::string& why);

  // Operations.
  void begin(std::uint64_t number);
  void advance();
  void release(std::uint64_t below);
  void hear_all_have(int peer, std::uint64_t below);
  void hear_done(int peer, const FrameHeader& header);

  // From one term to the next: the steps of regroup.
  Regroup::Steps steps();
  void freeze();
  Regroup::Bytes account();
  PlanBasis basis_of(const Membership& members) const;
  void plan(const Membership& next, const std::vector<Regroup::Bytes>& accounts,
            const std::function<void(Result<Regroup::Bytes>)>& planned);
  void install_next(const Regroup::Verdict& verdict, const std::vector<std::uint64_t>& frames,
                    const std::function<void(Status)>& installed);
  void go(const Regroup::Verdict& verdict);
  void ended(const std::string& why);

  Mesh* const mesh_;
  TimerService* const timers_;
  Background* const background_;
  const Options options_;
  const MemberHooks hooks_;
  Regroup regroup_;
  SlowExpulsion slow_;
  TermTraffic traffic_;
  std::unique_ptr<SlotMemory> discard_;  // where payloads of former terms go
  std::unique_ptr<Term> term_;           // the one that runs or ran last
  Succession succession_;
  bool is_started_ = false, is_frozen_ = false, has_failed_ = false, knows_lengths_ = false;
  bool is_retired_ = false, is_useless_ = false;  // useless: the others go on without this one

  std::vector<Entry> entries_;
  std::uint64_t posted_ = 0, done_ = 0, released_ = 0;
  std::uint64_t begun_ = 0;        // in any term
  std::uint64_t begun_below_ = 0;  // averages below were under way at the last loss

  std::optional<PlanBasis> basis_;  // of connect, all nodes
  std::uint64_t frozen_ns_ = 0;
  bool has_node_departed_ = false;
  // By node: how many operations it has, if it has said goodbye.
  std::vector<std::uint64_t> last_of_;
  // Losses that do not matter until there is something to do.
  std::vector<std::pair<int, std::string>> deferred_;
  std::string end_reason_;  // likewise
};

}  // namespace riffle
