#include "plugin/collective/elastic/survivors.h"

#include <algorithm>
#include <cstring>

#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/elastic/survivors_term.h"
#include "plugin/config/log.h"
#include "plugin/kernels/rescale.h"
#include "topology/base/check.h"
#include "topology/base/time.h"

namespace riffle {

namespace {

constexpr std::uint64_t kNoEnd = ~0ull;  // no goodbye was heard

DataType type_of(sparse::Element element) {
  switch (element) {
    case sparse::Element::kFloat16:
      return DataType::kFloat16;
    case sparse::Element::kBfloat16:
      return DataType::kBfloat16;
    case sparse::Element::kFloat32:
      break;
  }
  return DataType::kFloat32;
}

}  // namespace

Survivors::Survivors(Mesh* mesh, TimerService* timers, Background* background, Options options,
                     Hooks hooks)
    : mesh_(mesh),
      timers_(timers),
      background_(background),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      regroup_(mesh->rank(), mesh->size(),
               {.patience_ns = options_.survivors.patience_ns,
                .deadline_ns = 2 * options_.peer_timeout_ns + 5 * kSecond},
               steps()),
      traffic_(mesh->size()),
      entries_(static_cast<std::size_t>(options_.engine.max_operations)),
      last_of_(static_cast<std::size_t>(mesh->size()), kNoEnd) {}

Survivors::~Survivors() { forget_slow(); }

// -------------------------------------------------------------------------------- begin and end

Status Survivors::make_term(const Membership& members, const PlanSet& plans,
                            std::unique_ptr<Term>* made) {
  auto term = std::make_unique<Term>(this, members);
  term->engine.use_lengths(uses_lengths_);
  if (Status s = term->engine.install(plans); !s) return s;
  if (term->is_root()) term->plans = plans;
  *made = std::move(term);
  return Status::ok();
}

Status Survivors::install(const PlanSet& plans) {
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
    if (basis.is_nominal && options_.replan.least_kbps > 0) {
      log_warn(
          "RIFFLE_MIN_RATE has no effect: rates were neither measured nor given (RIFFLE_PROBE, "
          "RIFFLE_FABRIC)");
    }
  }
  term_->replanner.start(plans, basis);
  take_early();
}

void Survivors::take_early() {
  for (const Term::Early& m : std::exchange(term_->early, {})) {
    term_message(m.place, m.kind, m.message);
  }
}

// Whoever coordinates after a loss has to know the network.
void Survivors::take_basis(const std::vector<std::uint8_t>& message) {
  Result<PlanBasis> basis = decode_basis(message, mesh_->size());
  if (!basis) return;  // then it plans for an even network
  basis_ = std::move(*basis);
  for (const int child : term_->children) {
    term_->control.send(child, FrameType::kControl, kBasis, message);
  }
}

void Survivors::term_message(int place, std::uint32_t kind,
                             const std::vector<std::uint8_t>& message) {
  if (kind == kBasis) {
    if (place == term_->parent() && !basis_) take_basis(message);
    return;
  }
  const Status s = term_->replanner.is_mine(kind)
                       ? term_->replanner.received(place, kind, message)
                       : remote_error("unexpected message " + std::to_string(kind));
  if (!s) hooks_.violation(term_->node(place), s);
}

void Survivors::fail() {
  if (has_failed_) return;
  has_failed_ = true;
  forget_slow();
  regroup_.stop();
  freeze();
  for (; released_ < posted_; ++released_) {
    entry(released_).user->state.store(Operation::State::kFailed, std::memory_order_release);
  }
}

bool Survivors::retire() {
  if (has_failed_ || !is_started_ || regroup_.is_over() || is_idle()) return false;
  is_retired_ = true;
  // While others agree who goes on, what is under way is about to be given up.
  if (!regroup_.is_running()) return false;
  say_goodbye();
  regroup_.stop();
  return true;
}

bool Survivors::end() {
  // Also while others agree who goes on: this node needs nobody any more.
  const bool is_through = is_retired_ || (!regroup_.is_over() && is_idle());
  const bool is_clean = !has_failed_ && is_started_ && is_through;
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
  if (is_empty && !has_failed_) {  // the same on all nodes: needs nobody
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
  ask_about_those_who_left();
  if (has_failed_ || is_frozen_) return;
  begin(posted_ - 1);
  advance();
}

// Gives an operation to the engine, again if a term that ended had begun it.
void Survivors::begin(std::uint64_t number) {
  Entry& e = entry(number);
  const Operation& user = *e.user;
  e.inner.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  if (const std::string why = objection(user); !why.empty()) {
    return hooks_.violation(mesh_->rank(),
                            invalid_argument("call " + std::to_string(number) + why));
  }
  const bool again = std::exchange(e.has_begun, true);
  begun_ = std::max(begun_, number + 1);
  if (user.sparse != nullptr) return begin_sparse(e, again);
  if (user.is_average && number < begun_below_) {
    e.is_broken_off = !options_.survivors.plants_own_average || !again;
    return e.inner.state.store(Operation::State::kDone, std::memory_order_relaxed);
  }
  if (again && user.kept != nullptr) {
    std::memcpy(user.recv, user.kept, user.count * size_of(user.type));
  }
  Operation& o = e.inner;
  o.collective = user.collective;
  o.type = user.type;
  o.op = user.op;
  o.send = user.send;
  o.recv = user.recv;
  o.count = user.count;
  o.valid = user.valid;
  o.block = user.block;
  o.window = user.window;
  o.is_dry = user.is_dry;
  o.step = user.step;
  o.lane = user.lane;
  if (term_->mesh.size() == 1) {  // the last one left: no plan, and nothing to add
    o.length = o.count;
    if (o.recv != o.send && !o.is_dry) std::memcpy(o.recv, o.send, o.count * size_of(o.type));
    return o.state.store(Operation::State::kDone, std::memory_order_relaxed);
  }
  term_->engine.submit(&o);
  term_->replanner.operation_posted();
}

void Survivors::begin_sparse(Entry& e, bool again) {
  SparseSegment& s = *e.user->sparse;
  if (!again) {
    s.remember();
  } else if (!options_.survivors.plants_spent_residual) {
    s.roll_back();
  }
  if (again && s.kept != nullptr) {
    std::memcpy(s.recv, s.kept, s.whole * sparse::size_of(s.element));
  }
  term_->sparse->submit(&s, &e.inner);
  term_->replanner.operation_posted();
}

// What keeps an operation from making sense without the lost nodes; empty: nothing.
std::string Survivors::objection(const Operation& o) const {
  const std::size_t members = term_->mesh.members().nodes.size();
  if (members == static_cast<std::size_t>(mesh_->size())) return "";
  const std::string without = " without the " +
                              std::to_string(static_cast<std::size_t>(mesh_->size()) - members) +
                              " lost nodes: ";
  if (o.collective != Collective::kAllReduce) {
    return without + "only all-reduces can go on, and this is a reduce-scatter or an all-gather";
  }
  if (o.op == ReduceOp::kMin || o.op == ReduceOp::kMax || !options_.survivors.rescales) return "";
  if (o.op == ReduceOp::kSum && is_floating(o.type)) return "";
  return without + name_of(o.op) + " of " + name_of(o.type) +
         " cannot be scaled to stand for all nodes (RIFFLE_RESCALE=0 takes the survivors' result)";
}

// What the engine has finished since the last time.
void Survivors::advance() {
  if (is_frozen_) return;
  const std::uint64_t before = done_;
  while (done_ < posted_ &&
         entry(done_).inner.state.load(std::memory_order_relaxed) == Operation::State::kDone) {
    const Entry& e = entry(done_);
    scale(e.inner, *e.user);
    e.user->nodes = e.is_broken_off ? 0 : term_->mesh.size();
    ++done_;
  }
  if (done_ > before) tell_done();
}

// After a loss, so that it stands for all.
void Survivors::scale(const Operation& inner, const Operation& user) const {
  const int members = term_->mesh.size(), all = mesh_->size();
  if (members == all || !options_.survivors.rescales || user.is_average) return;
  const double factor = static_cast<double>(all) / static_cast<double>(members);
  if (const SparseSegment* s = user.sparse) {
    const bool is_sparse = s->outcome == SparseSegment::Outcome::kSparse;
    rescale(s->recv, is_sparse ? s->elements : s->whole, type_of(s->element), factor);
  } else if (inner.op == ReduceOp::kSum && !inner.is_dry) {
    rescale(inner.recv, inner.length, inner.type, factor);
  }
}

void Survivors::tell_done() {
  std::uint64_t below = done_;
  for (const std::uint64_t child : term_->children_done) {
    if (!options_.survivors.plants_early_end) below = std::min(below, child);
  }
  if (term_->is_root()) {
    if (below > released_) release(below);
  } else if (below > term_->told) {
    term_->told = below;
    send_done(term_->parent(), DoneFrame::kUp, below);
  }
}

// All nodes have the results of all operations below. They hear it first: a poster may leave as
// soon as it sees its own done.
void Survivors::release(std::uint64_t below) {
  for (const int child : term_->children) send_done(child, DoneFrame::kDown, below);
  while (released_ < below) {
    Operation* const user = entry(released_++).user;
    user->state.store(Operation::State::kDone, std::memory_order_release);
  }
}

void Survivors::send_done(int place, DoneFrame::Way way, std::uint64_t below) {
  DoneFrame frame;
  frame.below = below;
  frame.way = way;
  term_->mesh.send(place, header_of(frame), {}, kNoCookie, kUrgent);
}

void Survivors::hear_done(int peer, const FrameHeader& header) {
  const auto frame = frame_of<DoneFrame>(header);
  const int place = term_->mesh.members().place_of(peer);
  if (frame.way == DoneFrame::kDown) return hear_over(peer, frame.below);
  const auto child = std::find(term_->children.begin(), term_->children.end(), place);
  if (child == term_->children.end() || is_frozen_) return;
  std::uint64_t& known = term_->children_done[child - term_->children.begin()];
  known = std::max(known, frame.below);
  tell_done();
}

// Also when frozen: what all have is over, whatever comes.
void Survivors::hear_over(int peer, std::uint64_t below) {
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
  if (!discard_) return remote_error("no plan is installed here");
  if (next_ && !has_failed_ && header.term == mark_of(next_->mesh.members().term)) {
    (void)regroup_.has_begun(next_->mesh.members().term);
  }
  const bool is_wanted = !has_failed_ && !is_frozen_ && is_of_term(peer, header);
  if (!is_wanted || header.type == FrameType::kDone) return discard_->data();
  const int place = term_->mesh.members().place_of(peer);
  Result<std::byte*> at = remote_error("a sparse message, where no sparse mode is wanted");
  if (header.type == FrameType::kControl) {
    at = term_->control.get_receive_buffer(place, header);
  } else if (header.type != FrameType::kSparse) {
    at = term_->engine.get_receive_buffer(place, header);
  } else if (term_->sparse) {
    at = term_->sparse->get_receive_buffer(place, header);
  }
  if (!at) hooks_.violation(peer, at.status());
  return at;
}

void Survivors::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  ++traffic_.arrived[peer];
  if (has_failed_) return;
  if (!is_of_term(peer, header)) return check_drained();
  if (header.type == FrameType::kDone) {
    hear_done(peer, header);
    return check_drained();
  }
  if (is_frozen_) return check_drained();
  const int place = term_->mesh.members().place_of(peer);
  if (header.type == FrameType::kControl) {
    term_->control.arrived(place, header);
  } else if (header.type == FrameType::kSparse) {
    term_->sparse->arrived(place, header, payload);
    advance();
  } else {
    term_->engine.arrived(place, header, payload);
    advance();
  }
}

void Survivors::sent(int peer, std::uint64_t cookie) {
  --traffic_.under_way[peer];
  if (is_frozen_ || has_failed_) return check_drained();
  cookie &= ~kTermCookie;
  if ((cookie & kControlCookie) != 0) {
    term_->control.sent(cookie);
  } else if ((cookie & kSparseCookie) != 0) {
    term_->sparse->sent(cookie);
    advance();
  } else {
    term_->engine.sent(cookie);
    advance();
  }
}

// Losses that nobody minds until there is something to do: the job may be at its end everywhere.
void Survivors::lost(int peer, const std::string& why) {
  // What it had to say about a plan or a mode may be lost with it.
  const bool may_wait = !term_ || !term_->replanner.is_agreeing();
  gone(peer, regroup_.has_left(peer) ? Regroup::kLeftByItself : why, may_wait);
}

void Survivors::departed(int peer) {
  anybody_departed_ = true;
  if (has_failed_) return;
  const int place = term_->mesh.members().place_of(peer);
  if (place >= 0) term_->replanner.departed(place);
  gone(peer, Regroup::kLeftByItself, true);
}

void Survivors::gone(int peer, const std::string& why, bool may_wait) {
  if (has_failed_) return;
  is_useless_ = true;  // were this node retired
  if (may_wait && anybody_departed_ && is_idle() && regroup_.is_running()) {
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
  anybody_departed_ = true;
  last_of_[static_cast<std::size_t>(peer)] = last;
  hear_over(peer, below);
  if (has_failed_) return;
  regroup_.left(peer);
  ask_about_those_who_left();
}

// Whoever has said goodbye does not begin what comes after its last operation.
void Survivors::ask_about_those_who_left() {
  if (!anybody_departed_) return;
  for (const int node : regroup_.reached()) {
    if (last_of_[static_cast<std::size_t>(node)] >= posted_) continue;
    is_useless_ = true;  // were this node retired
    give_up(node, Regroup::kLeftByItself);
  }
}

void Survivors::received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
  if (has_failed_) return;
  if (kind == kFinished) return hear_goodbye(peer, message);
  is_useless_ = true;  // were this node retired: others agree who goes on
  if (const Status s = regroup_.received(peer, kind, message); !s) hooks_.violation(peer, s);
}

}  // namespace riffle
