#include "plugin/collective/elastic/survivors.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/elastic/loss_report.h"
#include "plugin/collective/elastic/recovery_plan.h"
#include "plugin/collective/elastic/repeat.h"
#include "plugin/config/log.h"
#include "topology/base/check.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

constexpr std::uint64_t kNoEnd = ~0ull;  // no goodbye was heard

constexpr std::int64_t kAnyRate = 1'000'000;

}  // namespace

Survivors::Survivors(Mesh* mesh, TimerService* timers, Background* background, Options options,
                     MemberHooks hooks)
    : mesh_(mesh),
      timers_(timers),
      background_(background),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      regroup_(mesh->rank(), mesh->size(),
               {.patience_ns = options_.survivors.patience_ns,
                .deadline_ns = 2 * options_.peer_timeout_ns + 5 * kSecond},
               steps()),
      slow_(mesh, timers, options_.work.replan.least_kbps, hooks_.name_of,
            [this](const std::vector<std::pair<int, std::string>>& away) { regroup_.expel(away); }),
      traffic_(mesh->size()),
      succession_(traffic_),
      entries_(static_cast<std::size_t>(options_.work.engine.max_operations)),
      last_of_(static_cast<std::size_t>(mesh->size()), kNoEnd) {}

// -------------------------------------------------------------------------------- begin and end

Status Survivors::make_term(const Membership& members, const PlanSet& plans,
                            std::unique_ptr<Term>* made) {
  MemberWork::Options options = options_.work;
  options.engine.nodes = members.nodes;
  options.engine.trace.term = static_cast<std::uint32_t>(members.term);
  Term::Hooks hooks;
  hooks.replan = hooks_.replan;
  hooks.replan.too_slow = [this](const std::vector<SlowNode>& places) {
    if (!has_failed_ && regroup_.is_running()) slow_.too_slow(places, regroup_.membership());
  };
  hooks.violation = [this, nodes = members.nodes](int place, const Status& why) {
    hooks_.violation(nodes[static_cast<std::size_t>(place)], why);
  };
  hooks.received = [this](const Term::Message& message) { term_message(message); };
  hooks.all_have = [this](std::uint64_t below) {
    if (below > released_) release(below);
  };
  auto term =
      std::make_unique<Term>(Term::Surroundings{mesh_, &traffic_, timers_, background_}, members,
                             options, options_.survivors.plants_early_end, std::move(hooks));
  if (Status s = term->work.install(plans, knows_lengths_); !s) return s;
  if (term->is_root()) term->plans = plans;
  *made = std::move(term);
  return Status::ok();
}

Status Survivors::install(const PlanSet& plans, bool knows_lengths) {
  knows_lengths_ = knows_lengths;
  Result<std::unique_ptr<SlotMemory>> discard = SlotMemory::map(kMaxFramePayload);
  if (!discard) return discard.status();
  discard_ = std::move(*discard);
  return make_term(regroup_.membership(), plans, &term_);
}

void Survivors::start(const PlanSet& plans) {
  is_started_ = true;
  PlanBasis basis;
  if (term_->is_root()) {
    basis = hooks_.basis();
    take_basis(encode(basis));
    if (basis.is_nominal && options_.work.replan.least_kbps > 0) {
      log_warn(
          "RIFFLE_MIN_RATE has no effect: rates were neither measured nor given (RIFFLE_PROBE, "
          "RIFFLE_FABRIC)");
    }
  }
  term_->work.start(plans, basis);
  term_->begin();
}

// The node that coordinates after a loss has to know the network.
void Survivors::take_basis(const std::vector<std::uint8_t>& message) {
  Result<PlanBasis> basis = decode_basis(message, mesh_->size());
  if (!basis) return;  // then it plans for an even network
  basis_ = std::move(*basis);
  for (const int child : term_->completion.children()) {
    term_->control.send(child, FrameType::kControl, kBasis, message);
  }
}

void Survivors::term_message(const Term::Message& m) {
  if (m.kind == kBasis) {
    if (m.place == term_->completion.parent() && !basis_) take_basis(m.bytes);
    return;
  }
  const Status s = term_->work.is_mine(m.kind)
                       ? term_->work.received(m.place, m.kind, m.bytes)
                       : remote_error("unexpected message " + std::to_string(m.kind));
  if (!s) hooks_.violation(term_->node(m.place), s);
}

void Survivors::fail() {
  if (has_failed_) return;
  has_failed_ = true;
  slow_.stop();
  regroup_.stop();
  freeze();
  for (; released_ < posted_; ++released_) {
    entry(released_).user->state.store(Operation::State::kFailed, std::memory_order_release);
  }
}

// (Regrouping has a deadline of its own. Operations may be over here and not everywhere.)
std::optional<std::vector<int>> Survivors::waits_for() const {
  if (is_idle() || is_frozen_) return std::nullopt;
  if (term_->work.is_idle()) return std::vector<int>();
  std::vector<int> nodes = term_->work.waits_for();
  for (int& node : nodes) node = term_->node(node);
  return nodes;
}

bool Survivors::retire() {
  if (has_failed_ || !is_started_ || regroup_.is_over() || is_idle()) return false;
  is_retired_ = true;
  // While others agree which nodes go on, what is under way is about to be given up.
  if (!regroup_.is_running()) return false;
  say_goodbye();
  regroup_.stop();
  return true;
}

bool Survivors::end() {
  // Also while others agree which nodes go on: this node needs no other one any more.
  const bool has_finished = is_retired_ || (!regroup_.is_over() && is_idle());
  const bool is_clean = !has_failed_ && is_started_ && has_finished;
  if (is_clean) {
    say_goodbye();
  } else {
    leave("it closed its communicator");
  }
  fail();
  return is_clean;
}

void Survivors::say_goodbye() {
  ByteWriter w;
  w.number(released_);
  w.number(posted_);
  const std::vector<std::uint8_t> message = w.take();
  for (const int node : regroup_.reached()) {
    if (node != mesh_->rank()) hooks_.send(node, kFinished, message);
  }
}

// ------------------------------------------------------------------------------------ operations

void Survivors::submit(Operation* operation) {
  const bool is_empty = operation->count == 0 && operation->sparse == nullptr;
  if (is_empty && !has_failed_) {  // the same on all nodes: needs no other one
    return operation->state.store(Operation::State::kDone, std::memory_order_release);
  }
  if (!has_failed_ && !end_reason_.empty()) hooks_.ended(end_reason_);
  if (has_failed_) {
    return operation->state.store(Operation::State::kFailed, std::memory_order_release);
  }
  RIFFLE_CHECK(posted_ - released_ < entries_.size(), "more operations than agreed");
  Entry& e = entry(posted_);
  e.user = operation;
  e.has_begun = e.is_broken_off = false;
  e.inner.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  ++posted_;
  for (const auto& [peer, why] : std::exchange(deferred_, {})) give_up(peer, why);
  give_up_nodes_that_ended_before();
  if (has_failed_ || is_frozen_) return;
  begin(posted_ - 1);
  advance();
}

// Gives an operation to the engine, again if a term that ended had begun it.
void Survivors::begin(std::uint64_t number) {
  Entry& e = entry(number);
  const Operation& user = *e.user;
  e.inner.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  const std::size_t lost = static_cast<std::size_t>(mesh_->size() - term_->mesh.size());
  const std::string problem = objection(user, lost, options_.survivors.rescales);
  if (!problem.empty()) {
    return hooks_.violation(mesh_->rank(),
                            invalid_argument("call " + std::to_string(number) + problem));
  }
  const bool again = std::exchange(e.has_begun, true);
  begun_ = std::max(begun_, number + 1);
  if (SparseSegment* const s = user.sparse) {
    if (!again) {
      s->remember();
    } else if (!options_.survivors.plants_spent_residual) {
      s->roll_back();
    }
    if (again) restore_input(user);
    return term_->work.submit(s, &e.inner);
  }
  if (user.is_average && number < begun_below_) {
    e.is_broken_off = !options_.survivors.plants_own_average || !again;
    return e.inner.state.store(Operation::State::kDone, std::memory_order_relaxed);
  }
  if (again) restore_input(user);
  Operation& o = e.inner;
  copy_call(user, &o);
  if (term_->mesh.size() == 1) {  // the last one left: no plan, and nothing to add
    o.length = o.count;
    if (o.recv != o.send && !o.is_dry) std::memcpy(o.recv, o.send, o.count * size_of(o.type));
    return o.state.store(Operation::State::kDone, std::memory_order_relaxed);
  }
  term_->work.submit(&o);
}

// What the engine has finished since the last time.
void Survivors::advance() {
  if (is_frozen_) return;
  const std::uint64_t before = done_;
  const int members = term_->mesh.size(), all = mesh_->size();
  const bool is_scaled = members < all && options_.survivors.rescales;
  while (done_ < posted_ &&
         entry(done_).inner.state.load(std::memory_order_relaxed) == Operation::State::kDone) {
    const Entry& e = entry(done_);
    // After a loss, so that it stands for all.
    if (is_scaled) scale(e.inner, *e.user, static_cast<double>(all) / members);
    e.user->nodes = e.is_broken_off ? 0 : members;
    ++done_;
  }
  if (done_ > before) term_->completion.finished(done_);
}

// All nodes have the results of all operations below. They hear it first: a poster may leave as
// soon as it sees its own done.
void Survivors::release(std::uint64_t below) {
  term_->completion.tell_all_have(below);
  while (released_ < below) {
    Operation* const user = entry(released_++).user;
    user->state.store(Operation::State::kDone, std::memory_order_release);
  }
}

void Survivors::hear_done(int peer, const FrameHeader& header) {
  const auto frame = frame_of<DoneFrame>(header);
  if (frame.way == DoneFrame::kDown) return hear_all_have(peer, frame.below);
  if (is_frozen_) return;
  term_->completion.subtree_has(term_->mesh.members().place_of(peer), frame.below);
}

// Also when frozen: what all have is over, whatever comes.
void Survivors::hear_all_have(int peer, std::uint64_t below) {
  if (below > done_) {
    return hooks_.violation(peer,
                            remote_error("it says that calls below " + std::to_string(below) +
                                         " are over, this node is at " + std::to_string(done_)));
  }
  if (below > released_) release(below);
}

// ------------------------------------------------------------------------------------- mesh sink

bool Survivors::is_of_term(int peer, const FrameHeader& header) const {
  return term_ && header.term == mark_of(term_->mesh.members().term) &&
         term_->mesh.members().has(peer);
}

Result<std::byte*> Survivors::get_receive_buffer(int peer, const FrameHeader& header) {
  if (header.term == 0) return remote_error("a frame of no term, where nodes may be lost");
  if (!discard_) return remote_error("no plan is installed here");
  const Term* const next = succession_.term();
  if (next != nullptr && !has_failed_ && header.term == mark_of(next->mesh.members().term)) {
    regroup_.begin_if_accepted(next->mesh.members().term);
  }
  const bool is_wanted = !has_failed_ && !is_frozen_ && is_of_term(peer, header);
  if (!is_wanted || header.type == FrameType::kDone) return discard_->data();
  const int place = term_->mesh.members().place_of(peer);
  FrameHandler& handler = term_->handler_of(header.type);
  Result<std::byte*> at = handler.get_receive_buffer(place, header);
  if (!at) hooks_.violation(peer, at.status());
  return at;
}

void Survivors::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  ++traffic_.arrived[peer];
  if (has_failed_) return;
  if (!is_of_term(peer, header)) return succession_.check();
  if (header.type == FrameType::kDone) {
    hear_done(peer, header);
    return succession_.check();
  }
  if (is_frozen_) return succession_.check();
  const int place = term_->mesh.members().place_of(peer);
  term_->handler_of(header.type).arrived(place, header, payload);
  if (header.type != FrameType::kControl) advance();
}

void Survivors::sent(int peer, std::uint64_t cookie) {
  --traffic_.under_way[peer];
  if (is_frozen_ || has_failed_) return succession_.check();
  cookie &= ~kTermCookie;
  if ((cookie & kControlCookie) != 0) return term_->control.sent(peer, cookie);
  term_->work.sent(peer, cookie);
  advance();
}

// Losses do not matter until there is something to do: the job may be at its end everywhere.
void Survivors::lost(int peer, const std::string& why) {
  // What it had to say about a plan or a mode may be lost with it.
  const bool may_wait = !term_ || !term_->work.is_agreeing();
  gone(peer, regroup_.has_left(peer) ? Regroup::kLeftByItself : why, may_wait);
}

void Survivors::departed(int peer) {
  has_node_departed_ = true;
  if (has_failed_) return;
  const int place = term_->mesh.members().place_of(peer);
  if (place >= 0) term_->work.departed(place);
  gone(peer, Regroup::kLeftByItself, true);
}

void Survivors::gone(int peer, const std::string& why, bool may_wait) {
  if (has_failed_) return;
  is_useless_ = true;  // were this node retired
  if (may_wait && has_node_departed_ && is_idle() && regroup_.is_running()) {
    deferred_.emplace_back(peer, why);
  } else {
    give_up(peer, why);
  }
}

// Whether its link still works or not: what waits there to be sent is in memory of a term that is
// about to end.
void Survivors::give_up(int peer, const std::string& why) {
  mesh_->dismiss(peer);
  regroup_.lost(peer, why);
}

void Survivors::hear_goodbye(int peer, const std::vector<std::uint8_t>& message) {
  ByteReader reader(message);
  const std::uint64_t below = reader.number(), last = reader.number();
  if (!reader.is_complete() || below > last) {
    return hooks_.violation(peer, remote_error("mangled goodbye"));
  }
  has_node_departed_ = true;
  last_of_[static_cast<std::size_t>(peer)] = last;
  hear_all_have(peer, below);
  if (has_failed_) return;
  regroup_.left(peer);
  give_up_nodes_that_ended_before();
}

// A node that has said goodbye does not begin what comes after its last operation.
void Survivors::give_up_nodes_that_ended_before() {
  if (!has_node_departed_) return;
  for (const int node : regroup_.reached()) {
    if (last_of_[static_cast<std::size_t>(node)] >= posted_) continue;
    is_useless_ = true;  // were this node retired
    give_up(node, Regroup::kLeftByItself);
  }
}

void Survivors::received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
  if (has_failed_) return;
  if (kind == kFinished) return hear_goodbye(peer, message);
  is_useless_ = true;  // were this node retired: others agree which nodes go on
  if (const Status s = regroup_.received(peer, kind, message); !s) hooks_.violation(peer, s);
}

// ------------------------------------------------------------------ from one term to the next

Regroup::Steps Survivors::steps() {
  Regroup::Steps s;
  s.send = [this](int peer, std::uint32_t kind, Regroup::Bytes message) {
    hooks_.send(peer, kind, std::move(message));
  };
  s.freeze = std::bind_front(&Survivors::freeze, this);
  s.frames_to = [this](int peer) { return traffic_.sent[peer]; };
  s.account = std::bind_front(&Survivors::account, this);
  s.plan = std::bind_front(&Survivors::plan, this);
  s.install = std::bind_front(&Survivors::install_next, this);
  s.go = std::bind_front(&Survivors::go, this);
  s.dismiss = [this](int peer) { mesh_->dismiss(peer); };
  s.end = std::bind_front(&Survivors::ended, this);
  s.call_later = [this](std::uint64_t delay_ns, const std::function<void()>& f) {
    return timers_->call_at(mesh_->now_ns() + delay_ns, f);
  };
  s.cancel = [this](std::uint64_t timer) { timers_->cancel(timer); };
  return s;
}

// The engine's own operations end here, without a word to their posters.
void Survivors::freeze() {
  if (is_frozen_) return;
  is_frozen_ = true;
  frozen_ns_ = mesh_->now_ns();
  if (!term_) return;
  term_->mesh.freeze();
  term_->work.fail();
}

Regroup::Bytes Survivors::account() {
  WorkAccount account;
  account.done = done_;
  account.begun = begun_;
  if (hooks_.replan.participant != nullptr) account.mode = hooks_.replan.participant->span();
  for (std::uint64_t number = released_; number < posted_; ++number) {
    const Entry& e = entry(number);
    if (e.has_begun && !is_repeatable(*e.user)) account.unrepeatable.push_back(number);
  }
  return encode(account);
}

// The network of those nodes, as known at connect.
PlanBasis Survivors::basis_of(const Membership& members) const {
  return restrict_to(basis_ ? *basis_ : PlanBasis{even_fabric(mesh_->size(), kAnyRate), true},
                     members.nodes);
}

void Survivors::plan(const Membership& next, const std::vector<Regroup::Bytes>& accounts,
                     const std::function<void(Result<Regroup::Bytes>)>& planned) {
  const ReplanOptions& replan = options_.work.replan;
  plan_recovery(accounts,
                {basis_of(next), replan.plan, replan.planned_bytes, hooks_.replan.relaxed_plans},
                background_, planned);
}

void Survivors::install_next(const Regroup::Verdict& verdict,
                             const std::vector<std::uint64_t>& frames,
                             const std::function<void(Status)>& installed) {
  succession_.supersede();
  Result<RecoveryOrder> order = decode_order(verdict.content);
  if (!order) return installed(order.status());
  if (!order->problem.empty()) return installed(remote_error(order->problem));
  const Result<PlanSet> plans = decode_plan_set(order->plans.data(), order->plans.size());
  if (!plans) return installed(plans.status());
  if (digest(*plans) != order->digest)
    return installed(remote_error("the plan's checksum differs"));
  std::unique_ptr<Term> next;
  if (const Status s = make_term(verdict.next, *plans, &next); !s) return installed(s);
  if (hooks_.replan.participant != nullptr) {
    const Status s =
        hooks_.replan.participant->catch_up(order->mode, next->mesh.rank(), next->mesh.size());
    if (!s) return installed(s);
  }
  // What is not over for all is not over here either: should others be lost before the term begins
  // here, some of them may have begun it, and made averages anew or given them up.
  done_ = std::min(done_, std::max(order->final_below, released_));
  succession_.accept(std::move(next), std::move(*order), frames,
                     [installed] { installed(Status::ok()); });
}

void Survivors::go(const Regroup::Verdict& verdict) {
  const Membership before = term_->mesh.members();
  term_ = succession_.take();  // nothing of the former one is under way, nor running
  is_frozen_ = false;
  done_ = std::max(succession_.order().final_below, released_);
  begun_below_ = succession_.order().begun_below;
  term_->completion.begin(done_);
  const double recovery_ms = static_cast<double>(mesh_->now_ns() - frozen_ns_) / 1e6;
  const LossRecord loss = loss_between(before, verdict.next, regroup_, recovery_ms);
  hooks_.went_on(
      loss, describe(loss, mesh_->size(), options_.survivors.rescales, regroup_, hooks_.name_of));
  const bool plans_again = term_->is_root() && options_.work.replan.collectives > 0;
  term_->work.start(std::exchange(term_->plans, {}),
                    plans_again ? basis_of(verdict.next) : PlanBasis());
  term_->begin();
  while (released_ < done_) {
    entry(released_++).user->state.store(Operation::State::kDone, std::memory_order_release);
  }
  for (std::uint64_t number = done_; number < posted_ && !has_failed_ && !is_frozen_; ++number) {
    begin(number);
  }
  advance();
}

void Survivors::ended(const std::string& why) {
  if (has_node_departed_ && is_idle()) {
    end_reason_ = why;  // a call that waits for an agreement would wait for ever
    if (hooks_.replan.participant != nullptr) hooks_.replan.participant->drop();
    return;
  }
  freeze();  // it may take a moment until all operations have failed
  hooks_.ended(why);
}

}  // namespace riffle
