// Survivors: what becomes of nodes that are lost or close, and the way from one term to the next.
#include <algorithm>
#include <functional>
#include <utility>

#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/elastic/loss_report.h"
#include "plugin/collective/elastic/recovery_plan.h"
#include "plugin/collective/elastic/repeat.h"
#include "plugin/collective/elastic/survivors.h"

namespace riffle {
namespace {

constexpr std::int64_t kAnyRate = 1'000'000;

}  // namespace

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
  if (order->final_below > done_) {
    return installed(
        remote_error("the order counts calls below " + std::to_string(order->final_below) +
                     " as over, of which here those below " + std::to_string(done_) + " are"));
  }
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
