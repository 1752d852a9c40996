// Survivors, part 2: from one term to the next. The steps that regroup.h asks for.
#include <algorithm>

#include "plugin/collective/elastic/survivors.h"
#include "plugin/collective/elastic/survivors_term.h"
#include "topology/base/printed.h"
#include "topology/plan/planner.h"

namespace riffle {

namespace {

bool is_repeatable(const Operation& o) {
  if (o.is_dry || o.is_average) return true;
  if (const SparseSegment* s = o.sparse) return s->send != s->recv || s->kept != nullptr;
  return o.send != o.recv || o.kept != nullptr;
}

constexpr std::int64_t kAnyRate = 1'000'000;

}  // namespace

Regroup::Steps Survivors::steps() {
  Regroup::Steps s;
  s.send = [this](int peer, std::uint32_t kind, Regroup::Bytes message) {
    hooks_.send(peer, kind, std::move(message));
  };
  s.freeze = [this] { freeze(); };
  s.frames_to = [this](int peer) { return traffic_.sent[peer]; };
  s.account = [this] { return account(); };
  s.plan = [this](const Membership& next, const std::vector<Regroup::Bytes>& accounts,
                  const std::function<void(Result<Regroup::Bytes>)>& planned) {
    plan(next, accounts, planned);
  };
  s.install = [this](const Regroup::Verdict& verdict, const std::vector<std::uint64_t>& frames,
                     const std::function<void(Status)>& installed) {
    install(verdict, frames, installed);
  };
  s.go = [this](const Regroup::Verdict& verdict) { go(verdict); };
  s.dismiss = [this](int peer) { mesh_->dismiss(peer); };
  s.end = [this](const std::string& why) { ended(why); };
  s.call_later = [this](std::uint64_t delay_ns, const std::function<void()>& f) {
    return timers_->call_at(mesh_->now_ns() + delay_ns, f);
  };
  s.cancel = [this](std::uint64_t timer) { timers_->cancel(timer); };
  return s;
}

// The engine's own operations end here; nobody outside hears of that.
void Survivors::freeze() {
  if (is_frozen_) return;
  is_frozen_ = true;
  frozen_ns_ = mesh_->now_ns();
  if (!term_) return;
  term_->mesh.freeze();
  term_->replanner.stop();
  term_->engine.fail();
  if (term_->sparse) term_->sparse->fail();
}

Regroup::Bytes Survivors::account() {
  WorkAccount account;
  account.done = done_;
  account.begun = begun_;
  if (hooks_.replan.party != nullptr) account.mode = hooks_.replan.party->span();
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

// The coordinator: which operations are over, and a plan for the network that is left.
void Survivors::plan(const Membership& next, const std::vector<Regroup::Bytes>& accounts,
                     const std::function<void(Result<Regroup::Bytes>)>& planned) {
  std::vector<WorkAccount> works;
  for (const Regroup::Bytes& bytes : accounts) {
    Result<WorkAccount> work = decode_account(bytes);
    if (!work) return planned(work.status());
    works.push_back(std::move(*work));
  }
  auto order = std::make_shared<RecoveryOrder>(order_of(works));
  const PlanBasis basis = basis_of(next);
  if (next.nodes.size() == 1) {
    const PlanSet alone = {.lanes = {GroupPlan{.nodes = 1, .levels = {}}}, .name = "alone"};
    order->plans = encode(alone);
    order->digest = digest(alone);
    return planned(encode(*order));
  }
  PlanOptions options = options_.replan.plan;
  options.small_message_ns = basis.small_message_ns;
  const auto work = [order, basis, options, bytes = options_.replan.planned_bytes,
                     relaxed = hooks_.replan.relaxed_plans] {
    Result<PlanChoice> choice = riffle::plan(basis.fabric, bytes, options);
    if (!choice) {  // a kind of plan that was asked for and needs other numbers of nodes
      PlanOptions any = options;
      any.only.clear();
      choice = riffle::plan(basis.fabric, bytes, any);
    }
    if (!choice) {
      order->problem = choice.status().message();
    } else {
      if (relaxed) choice->plans.relaxed = relaxed(basis.fabric);
      order->plans = encode(choice->plans);
      order->digest = digest(choice->plans);
    }
  };
  const auto then = [order, planned] { planned(encode(*order)); };
  if (background_ != nullptr && background_->run(work, then)) return;
  work();
  then();
}

void Survivors::install(const Regroup::Verdict& verdict, const std::vector<std::uint64_t>& frames,
                        const std::function<void(Status)>& installed) {
  if (next_) former_.push_back(std::move(next_));  // frames may be on their way into it
  installed_ = nullptr;
  Result<RecoveryOrder> order = decode_order(verdict.content);
  if (!order) return installed(order.status());
  if (!order->problem.empty()) return installed(remote_error(order->problem));
  const Result<PlanSet> plans = decode_plan_set(order->plans.data(), order->plans.size());
  if (!plans) return installed(plans.status());
  if (digest(*plans) != order->digest)
    return installed(remote_error("the plan's checksum differs"));
  if (const Status s = make_term(verdict.next, *plans, &next_); !s) return installed(s);
  if (hooks_.replan.party != nullptr) {
    const Status s =
        hooks_.replan.party->catch_up(order->mode, next_->mesh.rank(), next_->mesh.size());
    if (!s) return installed(s);
  }
  order_ = std::move(*order);
  // What is not over for all is not over here either: should others be lost before the term begins
  // here, some of them may have begun it, and made averages anew or given them up.
  done_ = std::min(done_, std::max(order_->final_below, released_));
  frames_ = frames;
  installed_ = installed;
  check_drained();
}

// Has every frame of earlier terms between us and the nodes of the next one arrived, and has what
// is ours left our memory?
void Survivors::check_drained() {
  if (!installed_ || !next_) return;
  const std::vector<int>& nodes = next_->mesh.members().nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int node = nodes[i];
    if (node == mesh_->rank()) continue;
    if (traffic_.arrived[node] < frames_[i] || traffic_.under_way[node] > 0) return;
  }
  former_.clear();
  std::exchange(installed_, nullptr)(Status::ok());
}

void Survivors::go(const Regroup::Verdict& verdict) {
  const Membership before = term_->mesh.members();
  term_ = std::move(next_);  // nothing of the former one is under way, nor running
  is_frozen_ = false;
  const std::uint64_t final_below = order_->final_below;
  done_ = std::max(final_below, released_);
  begun_below_ = order_->begun_below;
  std::fill(term_->children_done.begin(), term_->children_done.end(), done_);
  term_->told = done_;
  const LossRecord loss = loss_between(before, verdict.next);
  hooks_.went_on(loss, describe(loss));
  const bool plans_again = term_->is_root() && options_.replan.collectives > 0;
  term_->replanner.start(std::exchange(term_->plans, {}),
                         plans_again ? basis_of(verdict.next) : PlanBasis());
  take_early();
  while (released_ < done_) {
    entry(released_++).user->state.store(Operation::State::kDone, std::memory_order_release);
  }
  for (std::uint64_t number = done_; number < posted_ && !has_failed_ && !is_frozen_; ++number) {
    begin(number);
  }
  advance();
}

void Survivors::ended(const std::string& why) {
  if (anybody_departed_ && is_idle()) {
    end_reason_ = why;  // a call that waits for an agreement would wait for good
    if (hooks_.replan.party != nullptr) hooks_.replan.party->drop();
    return;
  }
  freeze();  // it may take a moment until all operations have failed
  hooks_.ended(why);
}

LossRecord Survivors::loss_between(const Membership& before, const Membership& now) const {
  LossRecord loss;
  for (const int node : before.nodes) {
    if (now.has(node)) continue;
    const std::string& why = regroup_.why_lost(node);
    loss.lost.push_back({node, why.empty() ? "others do not reach it" : why});
  }
  loss.left = static_cast<int>(now.nodes.size());
  loss.recovery_ms = static_cast<double>(mesh_->now_ns() - frozen_ns_) / 1e6;
  return loss;
}

std::string Survivors::describe(const LossRecord& loss) const {
  std::string who;
  for (const LossRecord::Node& node : loss.lost) {
    const std::string name = hooks_.name_of(node.rank);
    who += who.empty() ? "" : "; ";
    who += regroup_.has_left(node.rank) ? name + " has closed its communicator"
                                        : "lost " + name + ": " + node.why;
  }
  std::string line = (who.empty() ? "no node was lost" : who) +
                     printed("; %d of %d nodes go on, %.0f ms after it was noticed here", loss.left,
                             mesh_->size(), loss.recovery_ms);
  if (options_.survivors.rescales) {
    line += "; sums are multiplied by " + std::to_string(mesh_->size()) + "/" +
            std::to_string(loss.left) + ", min and max are those of the survivors";
  } else {
    line += "; results are those of the survivors, not scaled (RIFFLE_RESCALE=0)";
  }
  return line;
}

}  // namespace riffle
