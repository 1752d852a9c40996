#include "plugin/collective/connect/bootstrap.h"

#include <algorithm>
#include <utility>

#include "plugin/transport/base/mesh.h"

namespace riffle {

Bootstrap::Bootstrap(Mesh* mesh, NodeReport own, BootstrapSteps steps)
    : mesh_(mesh),
      steps_(std::move(steps)),
      link_is_open_(mesh->size(), false),
      gone_(mesh->size(), false),
      here_(mesh->size(), false) {
  reports_.push_back(std::move(own));
  for (const int child : {2 * mesh->rank() + 1, 2 * mesh->rank() + 2}) {
    if (child < mesh->size()) children_.push_back(child);
  }
  child_reported_.resize(children_.size(), false);
  child_agreed_.resize(children_.size(), false);
  link_is_open_[mesh->rank()] = true;
  closed_links_ = mesh->size() - 1;
}

bool Bootstrap::is_root() const { return mesh_->rank() == 0; }
int Bootstrap::parent() const { return (mesh_->rank() - 1) / 2; }

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
  if (kind == kAsk) return asked(peer, message);
  if (is_over()) return;
  if (kind == kHere || kind == kOutcome) return answered(peer, static_cast<Kind>(kind), message);
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
    const std::string problem = agreement ? agreement->problem : agreement.status().message();
    if (!problem.empty() || in_doubt_because_.empty()) finish(problem);  // see In-doubt outcome
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
    return finish(verdict->problem);  // the verdict reaches all nodes: no further round
  } else if (!verdict->fallback_reason.empty()) {
    // They all know from the verdict, too.
    phase_ = Phase::kOver;
    has_fallen_back_ = true;
    return steps_.finished(Status::ok(), verdict->fallback_reason);
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
  if (closed_links_ > 0 && problem_.empty()) return;  // one broke meanwhile
  if (std::count(child_agreed_.begin(), child_agreed_.end(), false) > 0 && problem_.empty()) {
    return;
  }
  if (is_root()) return finish(problem_);
  channel_->send(parent(), FrameType::kControl, kUp, encode(Agreement{problem_}));
  phase_ = Phase::kDecision;
}

void Bootstrap::fail(const std::string& problem) {
  if (is_over() || !in_doubt_because_.empty()) return;
  if (!has_agreed()) return fail_for_good(problem);
  in_doubt_because_ = problem;
  std::fill(here_.begin(), here_.end(), false);
  to_all(kAsk, problem);
  check_answers();
}

void Bootstrap::fail_for_good(const std::string& problem) {
  failed_after_agreeing_ = has_agreed();
  if (problem_.empty()) problem_ = problem;
  if (!is_root() && phase_ != Phase::kDecision) send(parent(), kUp, problem_);
  finish(problem_);
}

void Bootstrap::gone(int peer) {
  if (is_over()) return;
  gone_[peer] = true;
  if (link_is_open_[peer]) ++closed_links_;
  link_is_open_[peer] = false;
  check_answers();
}

// ------------------------------------------------------------------------------- timeout
// attribution, in doubt

void Bootstrap::call_roll() {
  if (is_over() || !in_doubt_because_.empty()) return;
  for (const int peer : neighbours()) {
    here_[peer] = false;
    send(peer, kAsk, "");
  }
}

void Bootstrap::expire() {
  if (is_over()) return;
  const std::string problem = attribute_timeout();
  if (!problem.empty()) return fail(problem);
  call_roll();  // they may have been lost since
}

void Bootstrap::give_up() {
  if (is_over()) return;
  std::string problem = in_doubt_because_.empty() ? attribute_timeout() : in_doubt_because_;
  if (problem.empty()) problem = missing();
  fail_for_good(problem);
}

void Bootstrap::asked(int peer, const std::vector<std::uint8_t>& message) {
  const Result<Agreement> agreement = decode_agreement(message);
  const std::string problem = agreement ? agreement->problem : agreement.status().message();
  // (Its question came over the link, whatever we have heard of that.)
  const auto answer = [this, peer](Kind kind, const std::string& text) {
    channel_->send(peer, FrameType::kControl, kind, encode(Agreement{text}));
  };
  if (is_over()) {
    has_fallen_back_ ? answer(kHere, "") : answer(kOutcome, problem_);
  } else if (problem.empty() || has_agreed()) {
    answer(kHere, problem);
    if (!problem.empty()) fail(problem);
  } else {
    if (problem_.empty()) problem_ = problem;
    answer(kOutcome, problem_);
    fail(problem_);
  }
}

void Bootstrap::answered(int peer, Kind kind, const std::vector<std::uint8_t>& message) {
  const Result<Agreement> outcome = decode_agreement(message);
  const std::string problem = outcome ? outcome->problem : outcome.status().message();
  if (kind == kHere) {
    // An answer to the roll call says nothing of what the peer will take for the decision.
    if (in_doubt_because_.empty() || !problem.empty()) here_[peer] = true;
    return check_answers();
  }
  if (!problem.empty() || has_agreed()) return finish(problem);
  fail("node " + std::to_string(peer) + " is connected, but this node has not agreed");
}

// Is there no node left that may know the outcome?
void Bootstrap::check_answers() {
  if (is_over() || in_doubt_because_.empty()) return;
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank() && !here_[peer] && !gone_[peer]) return;
  }
  fail_for_good(in_doubt_because_);
}

bool Bootstrap::is_neighbour(int peer) const {
  return (!is_root() && peer == parent()) ||
         std::find(children_.begin(), children_.end(), peer) != children_.end();
}

bool Bootstrap::expects_neighbour() const {
  const std::vector<int> nodes = neighbours();
  return std::any_of(nodes.begin(), nodes.end(),
                     [this](int peer) { return !link_is_open_[peer] && !gone_[peer]; });
}

std::vector<int> Bootstrap::neighbours() const {
  std::vector<int> nodes = children_;
  if (!is_root()) nodes.push_back(parent());
  return nodes;
}

std::string Bootstrap::attribute_timeout() const {
  std::string nodes;
  for (const int peer : neighbours()) {
    if (!here_[peer] && !gone_[peer]) nodes += (nodes.empty() ? "" : ", ") + std::to_string(peer);
  }
  if (nodes.empty()) return "";
  return "connect timed out: node " + std::to_string(mesh_->rank()) +
         " has no sign of life from node(s) " + nodes +
         " (RIFFLE_CONNECT_TIMEOUT, RIFFLE_PEER_TIMEOUT)";
}

std::string Bootstrap::missing() const {
  std::string nodes;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const bool waiting = phase_ == Phase::kReports ? !child_reported_[i] : !child_agreed_[i];
    if (waiting) nodes += (nodes.empty() ? "" : ", ") + std::to_string(children_[i]);
  }
  for (int peer = 0; phase_ == Phase::kLinks && peer < mesh_->size(); ++peer) {
    if (!link_is_open_[peer]) nodes += (nodes.empty() ? "" : ", ") + std::to_string(peer);
  }
  if (nodes.empty() && !is_root()) nodes = std::to_string(parent());
  return "connect timed out at node " + std::to_string(mesh_->rank()) + " waiting for node(s) " +
         nodes + " (RIFFLE_CONNECT_TIMEOUT, RIFFLE_PEER_TIMEOUT)";
}

void Bootstrap::send(int peer, Kind kind, const std::string& problem) {
  if (link_is_open_[peer]) {
    channel_->send(peer, FrameType::kControl, kind, encode(Agreement{problem}));
  }
}

void Bootstrap::to_all(Kind kind, const std::string& problem) {
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank()) send(peer, kind, problem);
  }
}

void Bootstrap::to_children(Kind kind, const std::vector<std::uint8_t>& message) {
  for (const int child : children_) {
    if (link_is_open_[child]) channel_->send(child, FrameType::kControl, kind, message);
  }
}

void Bootstrap::finish(const std::string& problem) {
  if (is_over()) return;
  // A node that knows already ignores it.
  if (in_doubt_because_.empty()) {
    to_children(kDown, encode(Agreement{problem}));
  } else {
    to_all(kOutcome, problem);
  }
  phase_ = Phase::kOver;
  problem_ = problem;
  steps_.finished(problem.empty() ? Status::ok() : remote_error(problem), "");
}

}  // namespace riffle
