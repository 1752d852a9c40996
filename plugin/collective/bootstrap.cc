#include "plugin/collective/bootstrap.h"

#include <algorithm>
#include <utility>

namespace riffle {

Bootstrap::Bootstrap(Mesh* mesh, NodeReport own, BootstrapSteps steps)
    : mesh_(mesh), steps_(std::move(steps)), link_is_open_(mesh->size(), false) {
  reports_.push_back(std::move(own));
  for (const int child : {2 * mesh->rank() + 1, 2 * mesh->rank() + 2}) {
    if (child < mesh->size()) children_.push_back(child);
  }
  child_reported_.resize(children_.size(), false);
  child_agreed_.resize(children_.size(), false);
  link_is_open_[mesh->rank()] = true;
  closed_links_ = mesh->size() - 1;
}

void Bootstrap::start() {
  if (!is_root()) mesh_->open(parent());
  for (const int child : children_) mesh_->open(child);
  reports_complete();
}

void Bootstrap::opened(int peer) {
  if (!link_is_open_[peer]) --closed_links_;
  link_is_open_[peer] = true;
  if (phase_ == Phase::kReports) reports_complete();
  if (phase_ == Phase::kLinks) check_links();
}

void Bootstrap::received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
  if (is_over()) return;
  const bool from_parent = !is_root() && peer == parent();
  const auto child = std::find(children_.begin(), children_.end(), peer);
  const std::size_t index = child - children_.begin();
  if (kind == kReport && child != children_.end() && !child_reported_[index]) {
    child_reported_[index] = true;
    on_reports(peer, message);
  } else if (kind == kVerdict && from_parent && phase_ == Phase::kVerdict) {
    to_children(kVerdict, message);
    take_verdict(message);
  } else if (kind == kUp && child != children_.end() && !child_agreed_[index]) {
    child_agreed_[index] = true;
    const Result<Agreement> agreement = decode_agreement(message);
    const std::string problem = agreement ? agreement->problem : agreement.status().message();
    if (!problem.empty() && phase_ < Phase::kLinks) return fail(problem);
    if (problem_.empty()) problem_ = problem;
    check_agreement();
  } else if (kind == kDown && from_parent) {
    const Result<Agreement> agreement = decode_agreement(message);
    finish(agreement ? agreement->problem : agreement.status().message());
  } else {
    fail("unexpected connect message " + std::to_string(kind) + " from node " +
         std::to_string(peer));
  }
}

void Bootstrap::on_reports(int peer, const std::vector<std::uint8_t>& message) {
  Result<std::vector<NodeReport>> reports = decode_reports(message);
  if (!reports) return fail("node " + std::to_string(peer) + ": " + reports.status().message());
  for (NodeReport& r : *reports) reports_.push_back(std::move(r));
  reports_complete();
}

void Bootstrap::reports_complete() {
  if (phase_ != Phase::kReports) return;
  if (std::count(child_reported_.begin(), child_reported_.end(), false) > 0) return;
  if (!is_root()) {
    if (!link_is_open_[parent()]) return;
    channel_->send(parent(), FrameType::kControl, kReport, encode(reports_));
    phase_ = Phase::kVerdict;
    return;
  }
  std::sort(reports_.begin(), reports_.end(),
            [](const NodeReport& a, const NodeReport& b) { return a.rank < b.rank; });
  for (int r = 0; r < mesh_->size(); ++r) {
    if (static_cast<int>(reports_.size()) != mesh_->size() || reports_[r].rank != r) {
      return fail("the nodes' reports do not cover ranks 0 to " +
                  std::to_string(mesh_->size() - 1));
    }
  }
  phase_ = Phase::kPreparing;
  if (!steps_.prepare) return decide();
  steps_.prepare(reports_, [this] {
    if (phase_ == Phase::kPreparing) decide();
  });
}

void Bootstrap::decide() {
  const std::vector<std::uint8_t> verdict = encode(steps_.decide(reports_));
  to_children(kVerdict, verdict);
  take_verdict(verdict);
}

void Bootstrap::take_verdict(const std::vector<std::uint8_t>& message) {
  const Result<Verdict> verdict = decode_verdict(message);
  std::string problem;
  if (!verdict) {
    problem = verdict.status().message();
  } else if (!verdict->problem.empty()) {
    return finish(verdict->problem);  // the verdict reaches everybody: no further round
  } else if (!verdict->aside.empty()) {
    // They all know from the verdict, too.
    phase_ = Phase::kOver;
    return steps_.finished(Status::ok(), verdict->aside);
  } else {
    const Result<PlanSet> plans = decode_plan_set(verdict->plans.data(), verdict->plans.size());
    if (!plans) {
      problem = plans.status().message();
    } else if (digest(*plans) != verdict->digest) {
      problem = "plan checksum " + std::to_string(digest(*plans)) + " differs from node 0's " +
                std::to_string(verdict->digest) + ": are all nodes running the same riffle?";
    } else if (const Status s = steps_.install(*plans, *verdict); !s) {
      problem = s.message();
    }
  }
  if (!problem.empty() && problem_.empty()) {
    problem_ = "node " + std::to_string(mesh_->rank()) + ": " + problem;
  }
  phase_ = Phase::kLinks;
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank()) mesh_->open(peer);
  }
  check_links();
}

void Bootstrap::check_links() {
  if (phase_ != Phase::kLinks || (closed_links_ > 0 && problem_.empty())) return;
  phase_ = Phase::kAgreement;
  check_agreement();
}

void Bootstrap::check_agreement() {
  if (phase_ == Phase::kLinks) return check_links();  // a child's problem ends our waiting too
  if (phase_ != Phase::kAgreement) return;
  if (std::count(child_agreed_.begin(), child_agreed_.end(), false) > 0 && problem_.empty()) {
    return;
  }
  if (is_root()) return finish(problem_);
  channel_->send(parent(), FrameType::kControl, kUp, encode(Agreement{problem_}));
  phase_ = Phase::kDecision;
}

void Bootstrap::fail(const std::string& problem) {
  if (is_over()) return;
  failed_after_agreeing_ = has_agreed();
  if (problem_.empty()) problem_ = problem;
  if (!is_root() && phase_ != Phase::kDecision && link_is_open_[parent()]) {
    channel_->send(parent(), FrameType::kControl, kUp, encode(Agreement{problem_}));
  }
  finish(problem_);
}

bool Bootstrap::may_have_left(int peer) const {
  if (phase_ != Phase::kVerdict) return has_agreed();
  return peer != parent() && std::count(children_.begin(), children_.end(), peer) == 0;
}

void Bootstrap::expire() {
  if (!is_over()) fail(missing());
}

std::string Bootstrap::missing() const {
  std::string who;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const bool waiting = phase_ == Phase::kReports ? !child_reported_[i] : !child_agreed_[i];
    if (waiting) who += (who.empty() ? "" : ", ") + std::to_string(children_[i]);
  }
  for (int peer = 0; phase_ == Phase::kLinks && peer < mesh_->size(); ++peer) {
    if (!link_is_open_[peer]) who += (who.empty() ? "" : ", ") + std::to_string(peer);
  }
  if (who.empty() && !is_root()) who = std::to_string(parent());
  return "connect timed out at node " + std::to_string(mesh_->rank()) + " waiting for node(s) " +
         who + " (RIFFLE_CONNECT_TIMEOUT, RIFFLE_PEER_TIMEOUT)";
}

void Bootstrap::to_children(Kind kind, const std::vector<std::uint8_t>& message) {
  for (const int child : children_) {
    if (link_is_open_[child]) channel_->send(child, FrameType::kControl, kind, message);
  }
}

void Bootstrap::finish(const std::string& problem) {
  if (is_over()) return;
  to_children(kDown, encode(Agreement{problem}));  // who knows already ignores it
  phase_ = Phase::kOver;
  steps_.finished(problem.empty() ? Status::ok() : remote_error(problem), "");
}

}  // namespace riffle
