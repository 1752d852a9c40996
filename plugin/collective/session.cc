#include "plugin/collective/session.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/elastic/fixed_members.h"
#include "plugin/collective/elastic/survivors.h"
#include "plugin/config/log.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

// For what the tree has to say of a loss, to nodes that see only what follows from it.
constexpr std::uint64_t kGraceNs = kSecond / 2;
// Neighbours have so long for a sign of life, at the end of connect; less if it is a short one.
constexpr std::uint64_t kRollCallNs = 5 * kSecond;
// A link that did not open in time knows better why (its address, the last error).
constexpr std::uint64_t kAfterLinksNs = kSecond / 20;

}  // namespace

Session::Session(int rank, int size, SessionOptions options, TimerService* timers,
                 SessionHooks hooks)
    : rank_(rank),
      size_(size),
      options_(std::move(options)),
      timers_(timers),
      hooks_(std::move(hooks)),
      departed_(size, false) {
  for (int i = 0; i < size_; ++i) names_.push_back("node " + std::to_string(i));
}

Session::~Session() { cancel_timers(); }

void Session::start(Mesh* mesh, NodeReport report, std::vector<MeshPart*> parts) {
  mesh_ = mesh;
  control_ = std::make_unique<ControlChannel>(
      mesh_, [this](int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
        received(peer, kind, message);
      });
  members_ = make_members(std::move(parts));
  stall_watch_.emplace(mesh_, timers_,
                       options_.stall_ns > 0 ? options_.stall_ns : options_.stall_warning_ns,
                       stall_hooks());
  ProbeTurns turns{hooks_.probe_turn, {}};
  if (hooks_.knows_network) {
    turns.is_needless = [this] { return hooks_.knows_network(reports_); };
  }
  prober_ = std::make_unique<Prober>(mesh_, timers_, std::move(turns));
  for (const auto& [type, handler] : {
           std::pair<FrameType, FrameHandler*>{FrameType::kControl, control_.get()},
           {FrameType::kFault, control_.get()},
           {FrameType::kProbe, prober_.get()},
           {FrameType::kData, members_.get()},
           {FrameType::kCredit, members_.get()},
           {FrameType::kLength, members_.get()},
           {FrameType::kSparse, members_.get()},
           {FrameType::kDone, members_.get()},
       }) {
    handlers_[static_cast<std::size_t>(type)] = handler;
  }
  BootstrapSteps steps;
  steps.prepare = [this](const std::vector<NodeReport>& reports, std::function<void()> go_on) {
    prepare(reports, std::move(go_on));
  };
  steps.decide = hooks_.decide;
  steps.install = [this](const PlanSet& plans, const Verdict& v) { return install(plans, v); };
  steps.finished = [this](Status outcome, const std::string& fallback_reason) {
    finish_connect(std::move(outcome), fallback_reason);
  };
  bootstrap_ = std::make_unique<Bootstrap>(mesh_, std::move(report), std::move(steps));
  bootstrap_->set_channel(control_.get());
  const std::uint64_t deadline_ns = mesh_->now_ns() + options_.connect_timeout_ns;
  const std::uint64_t roll_call_ns = std::min(kRollCallNs, options_.connect_timeout_ns / 4);
  connect_at(deadline_ns - roll_call_ns, &Bootstrap::call_roll);
  connect_at(deadline_ns + kAfterLinksNs, &Bootstrap::expire);
  connect_at(deadline_ns + kGraceNs, &Bootstrap::give_up);
  bootstrap_->start();
}

void Session::connect_at(std::uint64_t when_ns, void (Bootstrap::*step)()) {
  connect_timers_.push_back(
      timers_->call_at(when_ns, [this, step] { (bootstrap_.get()->*step)(); }));
}

// Something is wrong with a peer in the middle of connect. A lost node has neighbours in the tree;
// what others see may as well be a node that has heard of it and left.
void Session::connect_lost(int peer, const std::string& sentence) {
  const bool reaches_neighbours = !bootstrap_->expects_neighbour();
  if (bootstrap_->is_neighbour(peer) && reaches_neighbours) return bootstrap_->fail(sentence);
  connect_timers_.push_back(timers_->call_at(mesh_->now_ns() + kGraceNs,
                                             [this, sentence] { bootstrap_->fail(sentence); }));
}

std::unique_ptr<Members> Session::make_members(std::vector<MeshPart*> parts) {
  MemberHooks hooks;
  hooks.send = [this](int peer, std::uint32_t kind, std::vector<std::uint8_t> message) {
    control_->send(peer, FrameType::kControl, kind, std::move(message));
  };
  hooks.basis = hooks_.basis;
  hooks.replan = hooks_.replan;
  hooks.name_of = [this](int node) { return name_of(node); };
  hooks.went_on = hooks_.went_on;
  hooks.lost = [this](int peer, const Status& why) { lost(peer, why); };
  hooks.violation = [this](int peer, const Status& why) { violated(peer, why); };
  hooks.spread = [this](const std::string& fault) { spread(fault, fault); };
  hooks.tell = [this](const std::string& fault) { tell_all(fault); };
  hooks.fail = [this](const std::string& why) { fail(why); };
  hooks.ended = [this](const std::string& why) {
    if (is_retired()) return no_longer_needed();
    if (!fault_timer_ && !has_failed()) fail_soon(why);
  };
  const MemberWork::Options work{options_.engine, options_.replan, options_.sparse,
                                 std::move(parts)};
  if (options_.survivors.is_on) {
    return std::make_unique<Survivors>(
        mesh_, timers_, options_.background,
        Survivors::Options{options_.survivors, work, options_.peer_timeout_ns}, std::move(hooks));
  }
  return std::make_unique<FixedMembers>(mesh_, control_.get(), timers_, options_.background, work,
                                        options_.peer_timeout_ns, std::move(hooks));
}

void Session::violated(int peer, const Status& why) {
  const std::string sentence = name_of(peer) + ": " + why.message();
  if (!bootstrap_->is_over()) {
    after_connect_.push_back([this, sentence] { spread(sentence, sentence); });
    return bootstrap_->fail(sentence);
  }
  spread(sentence, sentence);
}

void Session::received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
  if (members_->is_mine(kind)) {
    if (is_connected_) {
      members_->received(peer, kind, message);
    } else if (!bootstrap_->is_over()) {
      early_.push_back({peer, kind, message});
    }
    return;
  }
  if (kind == kStallKind) {
    if (const Status s = stall_watch_->heard(peer, message); !s) violated(peer, s);
    return;
  }
  if (kind != kFaultKind) return bootstrap_->received(peer, kind, message);
  const std::string fault(message.begin(), message.end());
  const std::string sentence = name_of(peer) + " reports: " + fault;
  if (!bootstrap_->is_over()) {
    after_connect_.push_back([this, fault, sentence] { spread(fault, sentence); });
    return bootstrap_->fail(sentence);
  }
  spread(fault, sentence);
}

void Session::prepare(const std::vector<NodeReport>& reports, std::function<void()> go_on) {
  probe::KnownRacks known;
  if (!hooks_.wants_probe || !hooks_.wants_probe(reports, &known)) return go_on();
  // Connect has other work to do in its time.
  const std::uint64_t budget_ns =
      std::min(Prober::budget_ns(size_), options_.connect_timeout_ns / 2);
  // Two others may be before us.
  const std::uint64_t patience_ns =
      std::min(2 * Prober::budget_ns(size_) + kSecond, options_.connect_timeout_ns / 4);
  reports_ = reports;
  prober_->survey(std::move(known), patience_ns, budget_ns,
                  [this, go_on = std::move(go_on)](const ProbeOutcome& outcome) {
                    hooks_.probed(std::exchange(reports_, {}), outcome);
                    go_on();
                  });
}

Status Session::install(const PlanSet& plans, const Verdict& verdict) {
  if (hooks_.planned) hooks_.planned(verdict);
  for (int i = 0; i < size_ && i < static_cast<int>(verdict.hosts.size()); ++i) {
    names_[i] += " (" + verdict.hosts[i] + ")";
  }
  if (rank_ == 0) plans_ = plans;
  return members_->install(plans, verdict.knows_lengths);
}

void Session::finish_connect(Status outcome, const std::string& fallback_reason) {
  cancel_connect_timers();
  is_connected_ = outcome.is_ok() && fallback_reason.empty();
  if (bootstrap_->failed_after_agreeing()) tell_all(outcome.message());
  prober_->stop();
  if (is_connected_) members_->start(std::exchange(plans_, {}));
  if (is_connected_) stall_watch_->start();
  hooks_.connected(std::move(outcome), fallback_reason);
  const auto troubles = std::exchange(after_connect_, {});
  if (!is_connected_) return;
  // What came meanwhile.
  for (const Early& m : std::exchange(early_, {})) members_->received(m.peer, m.kind, m.message);
  for (int peer = 0; peer < size_; ++peer) {
    if (departed_[peer]) members_->departed(peer);
  }
  for (const auto& trouble : troubles) trouble();
}

void Session::submit(Operation* operation) { members_->submit(operation); }

void Session::abort(const std::string& fault, const std::string& why) {
  if (!bootstrap_ || has_failed()) return;
  if (is_connecting()) {
    // Those that are connected already hear of it, too.
    tell_all(fault);
    after_connect_.push_back([this, fault, why] { abort(fault, why); });
    return bootstrap_->fail(why);
  }
  if (is_connected_) members_->leave(fault);
  fail(why);
}

void Session::fail_operations() {
  // Calls that wait for an agreement would wait for ever.
  if (hooks_.replan.participant != nullptr) hooks_.replan.participant->drop();
  if (members_) members_->fail();
}

bool Session::retire(std::function<void()> over) {
  if (mesh_ == nullptr || !is_connected_ || has_failed() || fault_timer_) return false;
  if (!members_->retire()) return false;
  over_ = std::move(over);
  call_over_at(mesh_->now_ns() + options_.peer_timeout_ns);
  return true;
}

void Session::end_if_not_needed() {
  if (is_retired() && !members_->is_needed()) no_longer_needed();
}

// In a turn of its own: the caller may not be destroyed meanwhile.
void Session::no_longer_needed() {
  if (is_useless_) return;
  call_over_at(mesh_->now_ns());
  is_useless_ = true;
}

void Session::call_over_at(std::uint64_t when_ns) {
  const std::uint64_t timer = timers_->call_at(when_ns, [this] {
    over_timer_.reset();
    const std::function<void()> over = std::exchange(over_, {});
    over();
  });
  if (over_timer_) timers_->cancel(*over_timer_);
  over_timer_ = timer;
}

bool Session::end() {
  cancel_timers();
  if (!bootstrap_) return false;
  prober_->stop();
  // A failed connect drains too: its last messages say why.
  const bool has_no_part = !is_connected_ && bootstrap_->is_over();
  return members_->end() || has_no_part;
}

void Session::cancel_connect_timers() {
  for (const std::uint64_t timer : std::exchange(connect_timers_, {})) timers_->cancel(timer);
}

void Session::cancel_timers() {
  cancel_connect_timers();
  if (stall_watch_) stall_watch_->stop();
  if (fault_timer_) timers_->cancel(*fault_timer_);
  fault_timer_.reset();
  if (over_timer_) timers_->cancel(*over_timer_);
  over_timer_.reset();
}

// ------------------------------------------------------------------------------------- mesh sink

void Session::opened(int peer) {
  prober_->opened(peer);
  bootstrap_->opened(peer);
}

Result<std::byte*> Session::get_receive_buffer(int peer, const FrameHeader& header) {
  if (FrameHandler* const handler = handler_of(header))
    return handler->get_receive_buffer(peer, header);
  return remote_error("a frame of type " + std::to_string(static_cast<int>(header.type)) +
                      " has no business here");
}

void Session::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  FrameHandler* const handler = handler_of(header);
  if (handler == members_.get()) stall_watch_->moved();
  handler->arrived(peer, header, payload);
  end_if_not_needed();
}

void Session::sent(int peer, std::uint64_t cookie) {
  if (cookie == kNoCookie) return;
  FrameHandler& handler = handler_of(cookie);
  if (&handler == members_.get()) stall_watch_->moved();
  handler.sent(peer, cookie);
  end_if_not_needed();
}

FrameHandler* Session::handler_of(const FrameHeader& header) const {
  FrameHandler* const handler = handlers_[static_cast<std::size_t>(header.type)];
  return handler == control_.get() && members_->owns_message(header) ? members_.get() : handler;
}

FrameHandler& Session::handler_of(std::uint64_t cookie) const {
  const bool is_of_term = (cookie & kTermCookie) != 0;
  if (!is_of_term && (cookie & kControlCookie) != 0) return *control_;
  if (!is_of_term && (cookie & kProbeCookie) != 0) return *prober_;
  return *members_;
}

void Session::departed(int peer) {
  // (Had it failed it would have said so.)
  if (!bootstrap_->is_over() && !bootstrap_->may_have_left(peer)) {
    return bootstrap_->fail(name_of(peer) + " closed its communicator during connect");
  }
  departed_[peer] = true;
  bootstrap_->gone(peer);
  if (is_connected_) members_->departed(peer);
  end_if_not_needed();
}

void Session::lost(int peer, const Status& why) {
  if (departed_[peer]) return;  // it had said goodbye
  const std::string sentence = "lost " + name_of(peer) + ": " + why.message();
  if (!bootstrap_->is_over()) {
    after_connect_.push_back([this, peer, why] { lost(peer, why); });
    bootstrap_->gone(peer);
    // Nodes that reach both are told as well: between which two it was.
    return connect_lost(peer, own_name() + " " + sentence);
  }
  // What follows from a fault that is being told is no loss.
  if (is_connected_ && !fault_timer_) members_->lost(peer, why.message());
  end_if_not_needed();
}

}  // namespace riffle
