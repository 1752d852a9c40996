#include "lab/simulation/member.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lab/simulation/link_rates.h"
#include "plugin/transport/base/mesh.h"

namespace riffle::sim {
namespace {

constexpr std::byte kStale{0x5a};
// How long NCCL and the job take to close after an error, at most.
constexpr std::uint64_t kMostErrorNs = 20'000'000;

}  // namespace

Member::Member(SimNetwork* network, int rank, const Scenario& scenario, Workload* workload,
               Say broken, Say trace, std::function<void()> switching)
    : network_(network),
      rank_(rank),
      scenario_(scenario),
      workload_(workload),
      broken_(std::move(broken)),
      trace_(std::move(trace)),
      switching_(std::move(switching)),
      random_(scenario.seed * 1000 + static_cast<std::uint64_t>(rank)),
      background_(network, rank, [this] { return below(scenario_.most_planning_ns + 1); }) {
  session_ = std::make_unique<Session>(rank, scenario.size(), session_options(),
                                       &network->timers(rank), hooks());
  network_->set_sink(rank, this);
  sides_.emplace_back(scenario.size());
  std::iota(sides_.back().begin(), sides_.back().end(), 0);
  later(scenario.most_start_ns, &Member::start);
}

Member::~Member() = default;

SessionOptions Member::session_options() {
  SessionOptions options = scenario_.session;
  options.background = &background_;
  if (!scenario_.traces.empty()) {
    options.engine.trace.log = scenario_.traces[static_cast<std::size_t>(rank_)];
  }
  return options;
}

SessionHooks Member::hooks() {
  SessionHooks hooks;
  hooks.wants_probe = [this](const std::vector<NodeReport>&, probe::KnownRacks*) {
    return scenario_.probes;
  };
  hooks.probed = [this](const std::vector<NodeReport>&, const ProbeOutcome& outcome) {
    say("has probed" + (outcome.trouble.empty() ? "" : ", but " + outcome.trouble));
  };
  hooks.decide = [this](const std::vector<NodeReport>& reports) { return decide(reports); };
  hooks.basis = [this] { return PlanBasis{link_rates(scenario_.fabric), false}; };
  hooks.replan.count = [this] { return next_call_; };
  hooks.replan.observer = this;
  hooks.connected = [this](const Status& outcome, const std::string&) { connected(outcome); };
  hooks.failed = [this](const std::string& why) { failed(why); };
  hooks.went_on = [this](const LossRecord&, const std::string& what) { went_on(what); };
  return hooks;
}

void Member::on_replan(const ReplanEvent& event) {
  if (event.kind == ReplanEvent::Kind::kReport) return;
  const bool is_given_up = event.kind == ReplanEvent::Kind::kGivenUp;
  ++(is_given_up ? plan_changes_given_up_ : plan_changes_);
  say((is_given_up ? "gives up a change of the plan: " : "changes the plan: ") + event.cause);
}

void Member::later(std::uint64_t most_ns, void (Member::*what)()) {
  network_->timers(rank_).call_at(network_->now_ns() + below(most_ns + 1),
                                  [this, what] { (this->*what)(); });
}

void Member::say(const std::string& what) const {
  if (trace_) trace_("node " + std::to_string(rank_) + " " + what);
}

void Member::start() {
  say("starts");
  NodeReport report;
  report.rank = rank_;
  report.host = "host" + std::to_string(rank_);
  session_->start(&network_->mesh(rank_), report);
}

Verdict Member::decide(const std::vector<NodeReport>& reports) const {
  Verdict verdict;
  for (const NodeReport& r : reports) verdict.hosts.push_back(r.host);
  verdict.plans = encode(scenario_.plans);
  verdict.digest = digest(scenario_.plans);
  verdict.knows_lengths = scenario_.has_lengths;
  return verdict;
}

void Member::connected(const Status& outcome) {
  if (has_outcome_) broken_("node " + std::to_string(rank_) + ": connect ended twice");
  has_outcome_ = true;
  say(outcome ? "is connected" : "fails to connect: " + outcome.message());
  connected_ = outcome.is_ok();
  if (connected_) return later(scenario_.most_think_ns, &Member::poll);
  error_ = outcome.message();
  error_ns_ = network_->now_ns();
  end_soon();
}

void Member::failed(const std::string& why) {
  if (has_failed_) broken_("node " + std::to_string(rank_) + " failed twice");
  if (!connected_) broken_("node " + std::to_string(rank_) + " failed before it was connected");
  has_failed_ = true;
  say("fails: " + why);
  error_ = why;
  error_ns_ = network_->now_ns();
  if (scenario_.exits_on_error) {
    return network_->at(error_ns_, [this] { network_->kill(rank_); });
  }
  later(0, &Member::poll);  // its operations are failed by then
}

void Member::went_on(const std::string& what) {
  say("goes on: " + what);
  sides_.push_back(session_->membership().nodes);
  later(0, &Member::poll);  // calls may be over by then
}

void Member::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (header.type == FrameType::kControl &&
      frame_of<ControlFrame>(header).kind == PlanSwitch::kPlanKinds && switching_) {
    switching_();
  }
  sink().arrived(peer, header, payload);
  take_finished();
}
void Member::sent(int peer, std::uint64_t cookie) {
  sink().sent(peer, cookie);
  take_finished();
}
void Member::departed(int peer) {
  say("hears goodbye from node " + std::to_string(peer));
  sink().departed(peer);
}
void Member::lost(int peer, const Status& why) {
  say("loses node " + std::to_string(peer) + ": " + why.message());
  sink().lost(peer, why);
  take_finished();
}

void Member::poll() {
  posts_later_ = false;
  take_finished();
  if (ending_ || has_failed_) return;
  while (next_call_ < scenario_.calls.size() &&
         posted_.size() < static_cast<std::size_t>(scenario_.outstanding)) {
    post();
    take_finished();
    if (has_failed_) return;
    if (scenario_.most_think_ns > 0) break;
  }
  take_finished();
}

// As NCCL, only the oldest call is looked at.
void Member::take_finished() {
  if (!connected_ || ending_) return;
  while (!posted_.empty() && posted_.front()->operation.state != Operation::State::kRunning &&
         !ending_) {
    finish_oldest();
  }
  if (ending_ || (has_failed_ && posted_.empty())) return end_soon();
  if (finished_ == scenario_.calls.size()) return end_soon();
  const bool may_post = next_call_ < scenario_.calls.size() &&
                        posted_.size() < static_cast<std::size_t>(scenario_.outstanding);
  if (!may_post || posts_later_ || has_failed_) return;
  posts_later_ = true;
  later(scenario_.most_think_ns, &Member::poll);
}

void Member::finish_oldest() {
  Posted& p = *posted_.front();
  if (p.operation.state == Operation::State::kFailed) {
    if (!has_failed_) {
      broken_("node " + std::to_string(rank_) + ": a call failed and no node said why");
    }
    return end_soon();
  }
  std::string problem = workload_->check(p.call, rank_, p.recv.data(), sides_);
  if (!problem.empty()) broken_(problem);
  ++finished_;
  say("has the result of call " + std::to_string(p.call));
  // The job uses its memory for something else at once, and gives it back (asan watches).
  std::fill(p.recv.begin(), p.recv.end(), kStale);
  std::fill(p.send.begin(), p.send.end(), kStale);
  std::fill(p.kept.begin(), p.kept.end(), kStale);
  posted_.pop_front();
}

void Member::post() {
  const Call& call = scenario_.calls[next_call_];
  const std::size_t bytes = call.count * size_of(call.type);
  auto p = std::make_unique<Posted>();
  p->call = next_call_;
  p->recv.assign(bytes, kStale);
  if (!call.in_place) p->send.assign(bytes, kStale);
  std::vector<std::byte>& input = call.in_place ? p->recv : p->send;
  workload_->fill(next_call_, rank_, input.data());
  if (call.in_place && scenario_.session.survivors.is_on) {
    p->kept = p->recv;
    p->operation.kept = p->kept.data();
  }
  p->operation.type = call.type;
  p->operation.count = call.count;
  // At times no node knows, at times every third node does not.
  const bool knows =
      next_call_ % 5 != 0 && (next_call_ + static_cast<std::uint64_t>(rank_)) % 3 != 0;
  p->operation.valid = knows ? call.count : Operation::kUnknown;
  p->operation.send = input.data();
  p->operation.recv = p->recv.data();
  p->operation.state = Operation::State::kRunning;
  say("posts call " + std::to_string(next_call_));
  ++next_call_;
  posted_.push_back(std::move(p));
  session_->submit(&posted_.back()->operation);
}

void Member::end_soon() {
  if (ending_) return;
  ending_ = true;
  const std::uint64_t wait_ns =
      error_.empty() ? scenario_.most_pause_before_close_ns : kMostErrorNs;
  network_->timers(rank_).call_at(network_->now_ns() + below(wait_ns + 1), [this] {
    say("ends");
    if (session_->end()) {
      network_->close(rank_);
    } else {
      network_->mesh(rank_).abort();
    }
    background_.stop();
    posted_.clear();  // this memory must not be touched any more; asan watches
    over_ = true;
  });
}

std::string Member::waiting_for() const {
  if (!has_outcome_) return "connect";
  if (posted_.empty()) return "its next post";
  return "call " + std::to_string(posted_.front()->call);
}

}  // namespace riffle::sim
