#include "plugin/collective/session.h"

#include <algorithm>
#include <utility>

#include "topology/base/time.h"

namespace riffle {
namespace {

// For what the tree has to say of a loss, to those who see only what follows from it.
constexpr std::uint64_t kGraceNs = kSecond / 2;
// Neighbours have so long for a sign of life, at the end of connect; less if it is a short one.
constexpr std::uint64_t kRollCallNs = 5 * kSecond;
// A link that did not open in time knows better why (its address, the last error).
constexpr std::uint64_t kAfterLinksNs = kSecond / 20;
// Time for the news of a fault to leave before we fail and the job, perhaps, ends.
constexpr std::uint64_t kTellNs = kSecond / 200;

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

void Session::start(Mesh* mesh, NodeReport report) {
  mesh_ = mesh;
  control_ = std::make_unique<ControlChannel>(
      mesh_, [this](int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
        received(peer, kind, message);
      });
  if (options_.survivors.is_on) {
    survivors_ = make_survivors();
  } else {
    engine_ = std::make_unique<Engine>(mesh_, options_.engine,
                                       [this](int peer, const Status& why) { lost(peer, why); });
    replanner_ = std::make_unique<Replanner>(mesh_, control_.get(), engine_.get(), timers_,
                                             options_.background, options_.replan, hooks_.replan);
    if (options_.sparse) {
      sparse_ = std::make_unique<SparseRunner>(
          mesh_, *options_.sparse, [this](int peer, const Status& why) { lost(peer, why); });
    }
  }
  ProbeTurns turns{hooks_.probe_turn, {}};
  if (hooks_.knows_network) {
    turns.is_needless = [this] { return hooks_.knows_network(reports_); };
  }
  prober_ = std::make_unique<Prober>(mesh_, timers_, std::move(turns));
  BootstrapSteps steps;
  steps.prepare = [this](const std::vector<NodeReport>& reports, std::function<void()> go_on) {
    prepare(reports, std::move(go_on));
  };
  steps.decide = hooks_.decide;
  steps.install = [this](const PlanSet& plans, const Verdict& v) { return install(plans, v); };
  steps.finished = [this](Status outcome, const std::string& aside) {
    connect_is_over(std::move(outcome), aside);
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

// Something is wrong with a peer in the middle of connect. Whoever is lost has neighbours in the
// tree; what others see may as well be somebody who has heard of it and left.
void Session::connect_lost(int peer, const std::string& sentence) {
  if (bootstrap_->is_neighbour(peer)) return bootstrap_->fail(sentence);
  connect_timers_.push_back(timers_->call_at(mesh_->now_ns() + kGraceNs,
                                             [this, sentence] { bootstrap_->fail(sentence); }));
}

std::unique_ptr<Survivors> Session::make_survivors() {
  Survivors::Hooks hooks;
  hooks.send = [this](int peer, std::uint32_t kind, std::vector<std::uint8_t> message) {
    control_->send(peer, FrameType::kControl, kind, std::move(message));
  };
  hooks.basis = hooks_.basis;
  hooks.replan = hooks_.replan;
  hooks.name_of = [this](int node) { return name_of(node); };
  hooks.went_on = hooks_.went_on;
  hooks.violation = [this](int peer, const Status& why) {
    const std::string sentence = name_of(peer) + ": " + why.message();
    if (!bootstrap_->is_over()) {
      after_connect_.push_back([this, sentence] { spread(sentence, sentence); });
      return bootstrap_->fail(sentence);
    }
    spread(sentence, sentence);
  };
  hooks.ended = [this](const std::string& why) {
    if (is_retired()) return no_longer_needed();
    if (!has_fault_timer_ && !has_failed()) fail_soon(why);
  };
  return std::make_unique<Survivors>(
      mesh_, timers_, options_.background,
      Survivors::Options{options_.survivors, options_.engine, options_.replan,
                         options_.peer_timeout_ns, options_.sparse},
      std::move(hooks));
}

void Session::received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
  if (survivors_ && Survivors::is_mine(kind)) {
    if (is_connected_) {
      survivors_->received(peer, kind, message);
    } else if (!bootstrap_->is_over()) {
      early_.push_back({peer, kind, message});
    }
    return;
  }
  if (replanner_ && replanner_->is_mine(kind)) {
    if (!bootstrap_->is_over()) return;
    if (const Status s = replanner_->received(peer, kind, message); !s) lost(peer, s);
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
  std::vector<int> racks;
  if (!hooks_.wants_probe || !hooks_.wants_probe(reports, &racks)) return go_on();
  // Connect has other work to do in its time.
  const std::uint64_t budget_ns =
      std::min(Prober::budget_ns(size_), options_.connect_timeout_ns / 2);
  // Two others may be before us.
  const std::uint64_t patience_ns =
      std::min(2 * Prober::budget_ns(size_) + kSecond, options_.connect_timeout_ns / 4);
  reports_ = reports;
  prober_->survey(std::move(racks), patience_ns, budget_ns,
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
  if (survivors_) {
    survivors_->use_lengths(verdict.knows_lengths);
  } else {
    engine_->use_lengths(verdict.knows_lengths);
  }
  return survivors_ ? survivors_->install(plans) : engine_->install(plans);
}

void Session::connect_is_over(Status outcome, const std::string& aside) {
  cancel_connect_timers();
  is_connected_ = outcome.is_ok() && aside.empty();
  if (bootstrap_->failed_after_agreeing()) tell_everybody(outcome.message());
  prober_->stop();
  if (is_connected_ && survivors_) {
    survivors_->start(std::exchange(plans_, {}));
  } else if (is_connected_) {
    const bool adapts = rank_ == 0 && options_.replan.collectives > 0;
    const PlanBasis basis = adapts ? hooks_.basis() : PlanBasis();
    replanner_->start(std::exchange(plans_, {}), basis);
  }
  hooks_.connected(std::move(outcome), aside);
  const auto troubles = std::exchange(after_connect_, {});
  if (!is_connected_) return;
  // What came meanwhile about losses.
  for (const Early& m : std::exchange(early_, {})) survivors_->received(m.peer, m.kind, m.message);
  for (int peer = 0; survivors_ && peer < size_; ++peer) {
    if (departed_[peer]) survivors_->departed(peer);
  }
  for (const auto& trouble : troubles) trouble();
}

void Session::submit(Operation* operation) {
  if (survivors_) return survivors_->submit(operation);
  // A call of no elements needs nobody, and one within groups perhaps not the node that left.
  if (!left_.empty() && operation->count > 0) {
    if (operation->step == Operation::kExact) {
      fail(left_ + " closed its communicator; a further collective cannot end");
    } else if (!has_timer_ && !has_failed()) {
      watch_departed();
    }
  }
  if (operation->sparse != nullptr) {
    sparse_->submit(operation->sparse);
  } else {
    engine_->submit(operation);
  }
  replanner_->operation_posted();
}

void Session::abort(const std::string& fault, const std::string& why) {
  if (survivors_) {
    survivors_->leave(fault);
  } else {
    tell_everybody(fault);
  }
  fail(why);
}

bool Session::retire(std::function<void()> over) {
  if (mesh_ == nullptr || !is_connected_ || has_failed() || has_fault_timer_) return false;
  if (survivors_ ? !survivors_->retire() : is_idle()) return false;
  over_ = std::move(over);
  call_over_at(mesh_->now_ns() + options_.peer_timeout_ns);
  return true;
}

bool Session::is_needed() const {
  return survivors_ ? survivors_->is_needed() : !is_useless_ && !has_failed() && !is_idle();
}

void Session::look_whether_needed() {
  if (is_retired() && !is_needed()) no_longer_needed();
}

// In a turn of its own: whoever calls us may not be destroyed meanwhile.
void Session::no_longer_needed() {
  if (std::exchange(is_useless_, true)) return;
  call_over_at(mesh_->now_ns());
}

void Session::call_over_at(std::uint64_t when_ns) {
  if (over_timer_) timers_->cancel(*over_timer_);
  over_timer_ = timers_->call_at(when_ns, [this] {
    over_timer_.reset();
    const std::function<void()> over = std::exchange(over_, {});
    over();
  });
}

bool Session::end() {
  cancel_timers();
  if (mesh_ == nullptr) return false;
  prober_->stop();
  if (survivors_) {
    const bool unconnected = !is_connected_ && bootstrap_->is_over();
    return survivors_->end() || unconnected;
  }
  replanner_->stop();
  // A clean end says goodbye and drains; so does a failed connect, whose last messages say why.
  const bool clean = is_idle() && !engine_->has_failed() && bootstrap_->is_over();
  engine_->fail();
  if (sparse_) sparse_->fail();
  return clean;
}

void Session::cancel_connect_timers() {
  for (const std::uint64_t timer : std::exchange(connect_timers_, {})) timers_->cancel(timer);
}

void Session::cancel_timers() {
  cancel_connect_timers();
  if (has_timer_) timers_->cancel(timer_);
  has_timer_ = false;
  if (has_fault_timer_) timers_->cancel(fault_timer_);
  has_fault_timer_ = false;
  if (over_timer_) timers_->cancel(*over_timer_);
  over_timer_.reset();
}

// ------------------------------------------------------------------------------------- mesh sink

void Session::opened(int peer) {
  prober_->opened(peer);
  bootstrap_->opened(peer);
}

Result<std::byte*> Session::get_receive_buffer(int peer, const FrameHeader& header) {
  if (is_of_survivors(header)) return survivors_->get_receive_buffer(peer, header);
  switch (header.type) {
    case FrameType::kData:
    case FrameType::kCredit:
    case FrameType::kLength:
      if (engine_) return engine_->get_receive_buffer(peer, header);
      return remote_error("a frame of no term, where nodes may be lost");
    case FrameType::kSparse:
      if (sparse_ && bootstrap_->is_over()) return sparse_->get_receive_buffer(peer, header);
      return remote_error("a sparse message, where no sparse mode is wanted");
    case FrameType::kControl:
    case FrameType::kFault:
      return control_->get_receive_buffer(peer, header);
    case FrameType::kProbe:
      return prober_->get_receive_buffer(peer, header);
    default:
      return remote_error("a frame of type " + std::to_string(static_cast<int>(header.type)) +
                          " has no business here");
  }
}

void Session::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (is_of_survivors(header)) {
    survivors_->arrived(peer, header, payload);
  } else if (header.type == FrameType::kData || header.type == FrameType::kCredit ||
             header.type == FrameType::kLength) {
    engine_->arrived(peer, header, payload);
  } else if (header.type == FrameType::kSparse) {
    sparse_->arrived(peer, header, payload);
  } else if (header.type == FrameType::kProbe) {
    prober_->arrived(peer, header, payload);
  } else {
    control_->arrived(peer, header);
  }
  look_whether_needed();
}

bool Session::is_of_survivors(const FrameHeader& header) const {
  return survivors_ && header.type != FrameType::kProbe && header.term != 0;
}

void Session::sent(int peer, std::uint64_t cookie) {
  if (cookie == kNoCookie) return;
  if (survivors_ && (cookie & kTermCookie) != 0) {
    survivors_->sent(peer, cookie);
  } else if ((cookie & kControlCookie) != 0) {
    control_->sent(cookie);
  } else if ((cookie & kProbeCookie) != 0) {
    prober_->sent(cookie);
  } else if ((cookie & kSparseCookie) != 0) {
    if (sparse_) sparse_->sent(cookie);
  } else {
    engine_->sent(cookie);
  }
  look_whether_needed();
}

void Session::departed(int peer) {
  // (Had it failed it would have said so.)
  if (!bootstrap_->is_over() && !bootstrap_->may_have_left(peer)) {
    return bootstrap_->fail(name_of(peer) + " closed its communicator during connect");
  }
  departed_[peer] = true;
  bootstrap_->gone(peer);
  if (survivors_) {
    if (is_connected_) survivors_->departed(peer);
    return look_whether_needed();
  }
  replanner_->departed(peer);
  if (left_.empty()) left_ = name_of(peer);
  if (is_retired()) return;
  // It has sent us all it ever will. What is running now should end by itself; if not, say so.
  if (is_connected_ && !is_idle() && !has_timer_) watch_departed();
}

void Session::watch_departed() {
  has_timer_ = true;
  timer_ = timers_->call_at(mesh_->now_ns() + options_.peer_timeout_ns, [this] {
    has_timer_ = false;
    if (!is_idle()) fail(left_ + " closed its communicator during a collective");
  });
}

void Session::lost(int peer, const Status& why) {
  if (departed_[peer]) return;  // it had said goodbye
  const std::string sentence = "lost " + name_of(peer) + ": " + why.message();
  if (!bootstrap_->is_over()) {
    after_connect_.push_back([this, peer, why] { lost(peer, why); });
    bootstrap_->gone(peer);
    return connect_lost(peer, sentence);
  }
  if (survivors_) {
    // What follows from a fault that is being told is no loss.
    if (is_connected_ && !has_fault_timer_) survivors_->lost(peer, why.message());
    return look_whether_needed();
  }
  spread(sentence, sentence);
}

// --------------------------------------------------------------------------------------- failure

// Everybody who learns of a fault passes it on and only then fails: a process that ends because of
// it must not look like the cause to those who have not heard yet.
void Session::spread(const std::string& fault, const std::string& why) {
  if (is_retired()) return no_longer_needed();
  if (!is_connected_ || has_fault_timer_ || has_failed()) return;
  tell_everybody(fault);
  fail_soon(why);
}

// What was told has to leave before the process ends because of it.
void Session::fail_soon(const std::string& why) {
  cause_ = why;
  has_fault_timer_ = true;
  fault_timer_ = timers_->call_at(mesh_->now_ns() + kTellNs, [this] {
    has_fault_timer_ = false;
    fail(cause_);
  });
}

void Session::fail(const std::string& why) {
  if (is_retired()) return no_longer_needed();
  if (has_failed()) return;
  // What follows from a fault before its time is up is not the cause.
  hooks_.failed(cause_.empty() ? why : cause_);
  // Calls that wait for an agreement would wait for good.
  if (hooks_.replan.party != nullptr) hooks_.replan.party->drop();
  if (survivors_) return survivors_->fail();
  replanner_->stop();
  engine_->fail();
  if (sparse_) sparse_->fail();
}

void Session::tell_everybody(const std::string& why) {
  if (has_failed()) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || departed_[peer]) continue;
    control_->send(peer, FrameType::kFault, kFaultKind,
                   std::vector<std::uint8_t>(why.begin(), why.end()));
  }
}

}  // namespace riffle
