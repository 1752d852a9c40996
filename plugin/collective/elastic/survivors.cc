#include "plugin/collective/elastic/survivors.h"

#include <algorithm>
#include <cstring>

#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/elastic/recovery_messages.h"
#include "plugin/collective/elastic/repeat.h"
#include "plugin/config/log.h"
#include "topology/base/check.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

constexpr std::uint64_t kNoEnd = ~0ull;  // no goodbye was heard

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
  if (term_) term_->work.job_ended();
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
    if (term_) term_->work.job_ended();
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
  // Where this node is the only one left, it has gone on within that, and the operation with it.
  if (has_failed_ || is_frozen_ || e.has_begun) return;
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
  o.copy_call(user);
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
    e.user->length = e.inner.length;
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

void Survivors::received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
  if (has_failed_) return;
  if (kind == kFinished) return hear_goodbye(peer, message);
  is_useless_ = true;  // were this node retired: others agree which nodes go on
  if (const Status s = regroup_.received(peer, kind, message); !s) hooks_.violation(peer, s);
}

}  // namespace riffle
