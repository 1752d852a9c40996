#include "plugin/collective/elastic/regroup.h"

#include <algorithm>
#include <utility>

namespace riffle {
namespace {

std::string text_of(const std::vector<int>& nodes) {
  std::string text;
  for (const int node : nodes) text += (text.empty() ? "" : ", ") + std::to_string(node);
  return text.empty() ? "none" : text;
}

}  // namespace

Regroup::Regroup(int rank, int size, const Options& options, Steps steps)
    : rank_(rank),
      size_(size),
      options_(options),
      steps_(std::move(steps)),
      why_lost_(size),
      has_left_(size),
      ended_on_this_side_(size) {
  for (int node = 0; node < size_; ++node) last_.nodes.push_back(node);
}

Regroup::~Regroup() { cancel_timers(); }

std::vector<int> Regroup::reached() const {
  std::vector<int> nodes;
  for (const int node : last_.nodes) {
    if (node == rank_ || !has_lost(node)) nodes.push_back(node);
  }
  return nodes;
}

std::vector<int> Regroup::known_to_have_left() const {
  std::vector<int> nodes;
  for (int node = 0; node < size_; ++node) {
    if (has_left_[node]) nodes.push_back(node);
  }
  return nodes;
}

std::vector<int> Regroup::missing() const {
  std::vector<int> nodes;
  for (const int node : last_.nodes) {
    if (node != rank_ && has_lost(node)) nodes.push_back(node);
  }
  return nodes;
}

std::vector<int> Regroup::without_left(std::vector<int> nodes) const {
  std::erase_if(nodes, [this](int node) { return has_left_[node]; });
  return nodes;
}

void Regroup::lost(int peer, const std::string& why) {
  if (is_over_ || has_lost(peer)) return;
  why_lost_[peer] = why.empty() ? "lost" : why;
  if (!last_.has(peer)) return;
  if (phase_ == Phase::kRunning) return begin(round_ + 1);
  retry_without(peer);
}

void Regroup::expel(const std::vector<std::pair<int, std::string>>& members) {
  if (is_over_ || phase_ != Phase::kRunning) return;
  bool is_any = false;
  for (const auto& [member, why] : members) is_any |= send_away(member, why);
  if (is_any) begin(round_ + 1);
}

// Every node that hears of it does so, without waiting for a slow node's word.
bool Regroup::send_away(int member, const std::string& why) {
  if (member == rank_ || !last_.has(member) || has_lost(member)) return false;
  tell_excluded(member, why);
  steps_.dismiss(member);  // as for kGone
  why_lost_[member] = why;
  expelled_[member] = why;
  return true;
}

void Regroup::left(int peer) {
  if (is_over_ || has_left_[peer]) return;
  has_left_[peer] = true;
  if (phase_ != Phase::kRunning && last_.has(peer) && !has_lost(peer)) retry_without(peer);
}

// Is it named in what is being agreed on?
bool Regroup::counts_on(int peer) const {
  return verdict_ ? verdict_->next.has(peer)
                  : std::binary_search(planned_for_.begin(), planned_for_.end(), peer);
}

void Regroup::retry_without(int peer) {
  if (counts_on(peer)) return begin(round_ + 1);
  if (verdict_) return;  // it goes without that one
  states_.erase(peer);
  tell_state();
  gather();
}

void Regroup::begin(std::uint64_t round) {
  if (phase_ == Phase::kRunning) {
    steps_.freeze();
    deadline_timer_ = steps_.call_later(options_.deadline_ns, [this] {
      deadline_timer_.reset();
      end("the survivors of a loss did not agree in time (round " + std::to_string(round_) +
          ", nodes lost: " + text_of(missing()) + ")");
    });
  }
  account_ = steps_.account();  // anew: a round that was installed has changed what counts as over
  phase_ = Phase::kGathering;
  round_ = round;
  verdict_.reset();
  is_installing_ = false;
  planned_for_.clear();
  accepted_.clear();
  states_.clear();
  if (patience_timer_) steps_.cancel(*patience_timer_);
  patience_timer_ = steps_.call_later(options_.patience_ns, [this] { look_for_silent(); });
  tell_state();
  gather();
}

// Have all nodes we reach told their states? Then the lowest of them decides.
void Regroup::gather() {
  if (is_over_ || phase_ != Phase::kGathering || !planned_for_.empty()) return;
  const std::vector<int> nodes = present();
  Membership last = last_;
  for (const int node : nodes) {
    if (node == rank_) continue;
    const auto state = states_.find(node);
    if (state == states_.end()) return;
    if (state->second.last.term > last.term) last = state->second.last;
  }
  const std::vector<int> voters = without_left(last.nodes);
  if (!holds_quorum(voters, nodes)) {
    // The first to see it ends, and so makes the others' side smaller.
    const auto ended = std::ranges::count_if(
        voters, [this](int node) -> bool { return ended_on_this_side_[node]; });
    return end_cut_off(nodes.size(), nodes.size() + static_cast<std::size_t>(ended), voters.size());
  }
  if (nodes.front() == rank_ && no_state_names_lower()) decide(nodes, last);
}

// Where links are missing, one of those we hear may look to a node that we do not reach.
bool Regroup::no_state_names_lower() const {
  return std::all_of(states_.begin(), states_.end(), [this](const auto& entry) {
    const State& s = entry.second;
    return std::all_of(s.last.nodes.begin(), s.last.nodes.end(), [&](int node) {
      return node >= rank_ || has_left_[node] ||
             std::binary_search(s.missing.begin(), s.missing.end(), node);
    });
  });
}

void Regroup::decide(const std::vector<int>& nodes, const Membership& last) {
  const auto reaches = [this](int from, int to) {
    if (from == rank_) return !has_lost(to);
    const std::vector<int>& missing = states_.at(from).missing;
    return !std::binary_search(missing.begin(), missing.end(), to);
  };
  std::vector<int> able;
  for (const int node : nodes) {
    if (last.has(node)) able.push_back(node);
  }
  Membership next{round_, mutual(able, reaches)};
  const std::vector<int> voters = without_left(last.nodes);
  const std::string how_many =
      std::to_string(next.nodes.size()) + " of " + std::to_string(voters.size()) + " nodes";
  if (!holds_quorum(voters, next.nodes)) {
    return end_cut_off("only " + how_many +
                       " reach each other on this side, the others may go on " + "without them");
  }
  if (!next.has(rank_)) {
    return end_cut_off("this node does not reach all of those " + how_many +
                       " that reach each other and may go on without it");
  }
  planned_for_ = next.nodes;
  std::vector<Bytes> accounts;
  for (const int node : next.nodes) {
    accounts.push_back(node == rank_ ? account_ : states_.at(node).account);
  }
  steps_.plan(next, accounts, [this, next](Result<Bytes> content) {
    if (is_over_ || next.term != round_ || phase_ != Phase::kGathering) return;
    if (!content) return end(content.status().message());
    const Verdict verdict{next, std::move(*content)};
    tell_verdict(verdict);
    take(verdict);
  });
}

void Regroup::take(Verdict verdict) {
  verdict_ = std::move(verdict);
  phase_ = Phase::kAccepting;
  const std::string goodbye = "nodes " + text_of(verdict_->next.nodes) + " go on without this one";
  for (int node = 0; node < size_; ++node) {
    if (node == rank_ || has_lost(node) || verdict_->next.has(node)) continue;
    why_lost_[node] = has_left_[node] ? kLeftByItself : "some of the others do not reach it";
    tell_excluded(node, goodbye);
    steps_.dismiss(node);
  }
  install_if_heard();
}

void Regroup::install_if_heard() {
  if (is_over_ || phase_ != Phase::kAccepting || is_installing_) return;
  std::vector<std::uint64_t> frames;
  for (const int node : verdict_->next.nodes) {
    const auto state = states_.find(node);
    if (node != rank_ && state == states_.end()) return;
    frames.push_back(node == rank_ ? 0 : state->second.frames);
  }
  is_installing_ = true;
  steps_.install(*verdict_, frames,
                 [this, round = round_](const Status& outcome) { accept(round, outcome); });
}

void Regroup::accept(std::uint64_t round, const Status& outcome) {
  if (is_over_ || round != round_ || phase_ != Phase::kAccepting) return;
  if (!outcome) return end("cannot go on after a loss: " + outcome.message());
  phase_ = Phase::kAccepted;
  accepted_.push_back(rank_);
  if (verdict_->next.nodes.front() == rank_) return commit_if_all_accepted();
  tell_round(verdict_->next.nodes.front(), kAccepted);
}

void Regroup::commit_if_all_accepted() {
  const std::vector<int>& nodes = verdict_->next.nodes;
  if (phase_ != Phase::kAccepted || nodes.front() != rank_) return;
  const bool all = std::all_of(nodes.begin(), nodes.end(), [this](int node) {
    return std::find(accepted_.begin(), accepted_.end(), node) != accepted_.end();
  });
  if (!all) return;
  for (const int node : nodes) {
    if (node != rank_) tell_round(node, kCommit);
  }
  commit();
}

void Regroup::commit() {
  cancel_timers();
  phase_ = Phase::kRunning;
  const Verdict verdict = *std::exchange(verdict_, std::nullopt);
  last_ = verdict.next;
  planned_for_.clear();
  states_.clear();
  steps_.go(verdict);
}

void Regroup::begin_if_accepted(std::uint64_t term) {
  if (!is_over_ && phase_ == Phase::kAccepted && verdict_->next.term == term) commit();
}

// A stopped node is noticed by one peer earlier than by the others, by up to a heartbeat. A
// node that neither answers nor is reached by all others is lost.
void Regroup::look_for_silent() {
  patience_timer_ = steps_.call_later(options_.patience_ns, [this] { look_for_silent(); });
  std::map<int, int> accusers;
  for (const auto& [node, state] : states_) {
    for (const int other : state.missing) accusers.emplace(other, node);
  }
  for (const auto& [node, accuser] : accusers) {
    if (is_over_ || phase_ == Phase::kRunning) return;
    if (node == rank_ || has_lost(node) || states_.count(node) > 0 || !last_.has(node)) continue;
    if (has_left_[node]) continue;
    steps_.dismiss(node);  // as for kGone
    lost(node, "node " + std::to_string(accuser) + " has lost it, and it does not answer here");
  }
}

std::string Regroup::why_lost_text() const {
  constexpr std::size_t kExplained = 3, kNamed = 32;
  std::vector<int> nodes = missing();
  std::erase_if(nodes, [this](int node) -> bool { return ended_on_this_side_[node]; });
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), kNamed); ++i) {
    const std::string node = std::to_string(nodes[i]);
    if (i < kExplained) {
      text += (i == 0 ? "lost node " : ", node ") + node + ": " + why_lost_[nodes[i]];
    } else {
      text += (i == kExplained ? "; also lost: " : ", ") + node;
    }
  }
  if (nodes.size() > kNamed) text += " and " + std::to_string(nodes.size() - kNamed) + " more";
  return text.empty() ? "some nodes do not reach each other" : text;
}

void Regroup::leave(const std::string& why, bool is_cut_off) {
  if (is_over_) return;
  tell_gone(why, is_cut_off);
  stop();
}

// `side`: with those that have ended here, for the same reason it seems. If they are many, it was
// another one: they have worked without this node, which slept, and then ended one after the other.
void Regroup::end_cut_off(std::size_t reached, std::size_t side, std::size_t voters) {
  const bool is_side = 2 * side <= voters;
  const std::string how_many =
      std::to_string(is_side ? side : reached) + " of " + std::to_string(voters) + " nodes";
  end_cut_off(is_side ? "only " + how_many + " are on this side, the others may go on without them"
                      : "this node, itself included, reaches only " + how_many +
                            ", the others may have gone on without it");
}

void Regroup::end_cut_off(const std::string& how) {
  end("excluded or cut off: " + how + " (" + why_lost_text() + ")", true);
}

void Regroup::end(const std::string& why, bool is_cut_off) {
  if (is_over_) return;
  leave("it ended: " + why, is_cut_off);
  steps_.end(why);
}

void Regroup::stop() {
  is_over_ = true;
  cancel_timers();
}

void Regroup::cancel_timers() {
  if (patience_timer_) steps_.cancel(*patience_timer_);
  if (deadline_timer_) steps_.cancel(*deadline_timer_);
  patience_timer_.reset();
  deadline_timer_.reset();
}

}  // namespace riffle
