#include "plugin/collective/connect/prober.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "plugin/transport/base/mesh.h"
#include "plugin/transport/base/random.h"

namespace riffle {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kLeastPauseNs = 30 * kMs;
constexpr char kNoTurn[] = "others were probing this network all the time";
constexpr char kTimeIsUp[] = "the time for it was up";
constexpr std::uint64_t kSurveySeed = 1;
constexpr std::uint64_t kBefore = 0;      // priority: as answers
constexpr std::size_t kMostIncoming = 8;  // messages being received at a time

// In the tree, where the parent of r is (r-1)/2: is `node` in the subtree of `root`?
bool is_below(int node, int root) {
  while (node > root) node = (node - 1) / 2;
  return node == root;
}

// No node below `root` has to know of other flows: with all of them in every message, orders would
// grow with the square of the nodes.
ProbeOrder part_of(const ProbeOrder& order, int root) {
  ProbeOrder part = order;
  std::erase_if(part.flows, [root](const probe::Flow& f) {
    return !is_below(f.from, root) && !is_below(f.to, root);
  });
  return part;
}

}  // namespace

Prober::Prober(Mesh* mesh, TimerService* timers, ProbeTurns turns)
    : mesh_(mesh),
      timers_(timers),
      flows_(mesh),
      link_is_open_(mesh->size(), false),
      turns_(std::move(turns)) {
  for (const int child : {2 * mesh->rank() + 1, 2 * mesh->rank() + 2}) {
    if (child < mesh->size()) children_.push_back(child);
  }
  link_is_open_[mesh->rank()] = true;
}

bool Prober::is_root() const { return mesh_->rank() == 0; }
int Prober::parent() const { return (mesh_->rank() - 1) / 2; }

Prober::~Prober() { stop(); }

std::uint64_t Prober::budget_ns(int nodes) {
  return std::clamp<std::uint64_t>(250ull * static_cast<std::uint64_t>(nodes) - 50, 1950, 9000) *
         kMs;
}

void Prober::stop() {
  stopped_ = true;
  done_ = nullptr;
  if (has_timer_) timers_->cancel(timer_);
  if (has_retry_) timers_->cancel(retry_);
  has_timer_ = has_retry_ = false;
  turn_ = nullptr;
}

// ------------------------------------------------------------------------------------------ node 0

void Prober::survey(probe::KnownRacks known, std::uint64_t patience_ns, std::uint64_t budget_ns,
                    std::function<void(const ProbeOutcome&)> done) {
  survey_ = std::make_unique<probe::Survey>(mesh_->size(), kSurveySeed, std::move(known));
  done_ = std::move(done);
  begin_ns_ = mesh_->now_ns();
  budget_ns_ = budget_ns;
  set_limit(begin_ns_ + (turns_.take ? patience_ns : budget_ns));
  try_turn();
}

void Prober::set_limit(std::uint64_t when_ns) {
  if (has_timer_) timers_->cancel(timer_);
  has_timer_ = true;
  timer_ = timers_->call_at(when_ns, [this] {
    has_timer_ = false;
    finish(is_waiting_ ? kNoTurn : survey_->is_enough() ? "" : kTimeIsUp);
  });
}

// We first: where all communicators have one node 0, only one of them disturbs the other nodes.
void Prober::try_turn() {
  if (is_waiting_ && turns_.is_needless && turns_.is_needless()) return finish(kNoTurn);
  if (turns_.take && !(turn_ = turns_.take())) return give_way();
  ProbeOrder take_turn;
  take_turn.number = order_.number + 1;
  carry_out(take_turn);
}

// Pauses of no common measure, so that two communicators that met will not meet for ever.
void Prober::give_way() {
  has_retry_ = is_waiting_ = true;
  const std::uint64_t pause_ns = kLeastPauseNs + random_u64() % kLeastPauseNs;
  retry_ = timers_->call_at(mesh_->now_ns() + pause_ns, [this] {
    has_retry_ = false;
    try_turn();
  });
}

void Prober::begin_rounds() {
  is_waiting_ = false;
  if (turns_.take) {
    begin_ns_ = mesh_->now_ns();
    set_limit(begin_ns_ + budget_ns_);
  }
  next_round();
}

// In the budget, by what rounds took so far.
int Prober::rounds_left() const {
  if (survey_->observed().empty()) return std::numeric_limits<int>::max();
  const std::uint64_t spent_ns = std::max<std::uint64_t>(mesh_->now_ns() - begin_ns_, 1);
  const std::uint64_t left_ns = budget_ns_ - std::min(budget_ns_, spent_ns);
  return static_cast<int>(left_ns * survey_->observed().size() / spent_ns);
}

void Prober::next_round() {
  const std::optional<probe::Round> round = survey_->next(rounds_left());
  if (!round) return finish("");
  ProbeOrder order;
  order.number = order_.number + 1;
  order.kind = ProbeOrder::Kind::kRound;
  order.duration_us = kRoundUs;
  order.most_bytes = kMostFlowBytes;
  order.flows = round->flows;
  carry_out(order);
}

void Prober::end_round() {
  if (order_.kind == ProbeOrder::Kind::kGiveBack) return give_way();
  if (order_.kind == ProbeOrder::Kind::kTakeTurn) {
    if (!is_busy_) return begin_rounds();
    ProbeOrder give_back;
    give_back.number = order_.number + 1;
    give_back.kind = ProbeOrder::Kind::kGiveBack;
    return carry_out(give_back);
  }
  take_samples();
  next_round();
}

// Receivers' counts and senders' round trips become samples, in the order of the flows.
void Prober::take_samples() {
  std::map<std::pair<int, int>, probe::Sample> samples;
  for (const ProbeReport::Entry& e : entries_) {
    probe::Sample& s = samples[{e.flow.from, e.flow.to}];
    s.kbps = std::max(s.kbps, e.sample.kbps);
    s.together_kbps = std::max(s.together_kbps, e.sample.together_kbps);
    s.rtt_us = std::max(s.rtt_us, e.sample.rtt_us);
    s.is_steady = s.is_steady || e.sample.is_steady;
    s.hops = std::max(s.hops, e.sample.hops);
    bytes_ += e.bytes;
  }
  probe::Observed observed;
  observed.round.flows = order_.flows;
  for (const probe::Flow& f : order_.flows) observed.samples.push_back(samples[{f.from, f.to}]);
  survey_->add(std::move(observed));
}

void Prober::finish(const std::string& trouble) {
  if (!done_) return;
  ProbeOutcome outcome;
  outcome.findings = survey_->findings();
  outcome.observed = survey_->observed();
  outcome.trouble = trouble;
  outcome.time_ns = mesh_->now_ns() - begin_ns_;
  outcome.bytes = bytes_;
  const auto done = std::exchange(done_, nullptr);
  stop();
  done(outcome);
}

// --------------------------------------------------------------------------------------- all nodes

void Prober::carry_out(const ProbeOrder& order) {
  order_ = order;
  entries_.clear();
  own_part_over_ = is_busy_ = false;
  children_missing_ = static_cast<int>(children_.size());
  for (const int child : children_) {
    send(child, ProbeFrame::kOrder, order.number, encode(part_of(order, child)));
  }
  if (order.kind == ProbeOrder::Kind::kGiveBack) {
    turn_ = nullptr;
    own_part_over_ = true;
    return report_if_complete();
  }
  if (order.kind == ProbeOrder::Kind::kTakeTurn) {
    if (turns_.take && turn_ == nullptr) turn_ = turns_.take();
    is_busy_ = turns_.take && turn_ == nullptr;
    for (int peer = 0; peer < mesh_->size(); ++peer) {
      if (peer != mesh_->rank()) mesh_->open(peer);
    }
    return opened(mesh_->rank());
  }
  flows_.start(order, [this] {
    own_part_over_ = true;
    report_if_complete();
  });
}

void Prober::opened(int peer) {
  link_is_open_[peer] = true;
  const bool is_waited_for = order_.number > 0 && order_.kind == ProbeOrder::Kind::kTakeTurn;
  if (stopped_ || !is_waited_for || own_part_over_) return;
  if (std::count(link_is_open_.begin(), link_is_open_.end(), false) > 0) return;
  own_part_over_ = true;
  report_if_complete();
}

void Prober::report_if_complete() {
  if (stopped_ || !own_part_over_ || children_missing_ > 0) return;
  const std::vector<ProbeReport::Entry> own = flows_.entries();
  entries_.insert(entries_.end(), own.begin(), own.end());
  if (is_root()) return end_round();
  ProbeReport report;
  report.number = order_.number;
  report.is_busy = is_busy_;
  report.entries = std::move(entries_);
  send(parent(), ProbeFrame::kReport, order_.number, encode(report));
}

void Prober::take_message(int peer, const ProbeFrame& frame, const Message& message) {
  if (frame.step == ProbeFrame::kOrder && !is_root() && peer == parent()) {
    const Result<ProbeOrder> order = decode_probe_order(message, mesh_->size());
    // An order that makes no sense stays unanswered: node 0 runs out of time and goes on.
    if (order && order->number > order_.number) carry_out(*order);
  } else if (frame.step == ProbeFrame::kReport && frame.round == order_.number &&
             std::count(children_.begin(), children_.end(), peer) > 0 && children_missing_ > 0) {
    const Result<ProbeReport> report = decode_probe_report(message, mesh_->size());
    if (!report) return;
    entries_.insert(entries_.end(), report->entries.begin(), report->entries.end());
    is_busy_ = is_busy_ || report->is_busy;
    --children_missing_;
    report_if_complete();
  }
}

// ---------------------------------------------------------------------------------------- messages

void Prober::send(int peer, ProbeFrame::Step step, std::uint32_t number, const Message& message) {
  if (message.size() > kMaxFramePayload) return;  // of 100,000 flows and more
  outgoing_.emplace_back(kProbeCookie | next_cookie_++, message);
  const auto& [cookie, bytes] = outgoing_.back();
  ProbeFrame frame;
  frame.step = step;
  frame.round = number;
  mesh_->send(peer, header_of(frame, bytes.size()), std::as_bytes(std::span(bytes)), cookie,
              kBefore);
}

void Prober::sent(int /*peer*/, std::uint64_t cookie) {
  std::erase_if(outgoing_, [cookie](const auto& one) { return one.first == cookie; });
}

Result<std::byte*> Prober::get_receive_buffer(int peer, const FrameHeader& header) {
  if (frame_of<ProbeFrame>(header).is_message()) {
    if (incoming_.size() >= kMostIncoming + children_.size()) {
      return remote_error("too many probe messages at once from node " + std::to_string(peer));
    }
    incoming_.emplace_back(std::max<std::uint32_t>(header.length, 1));
    return reinterpret_cast<std::byte*>(incoming_.back().data());
  }
  if (header.length > ProbeFlows::kFrameBytes) {
    return remote_error("a probe frame of " + std::to_string(header.length) + " bytes, at most " +
                        std::to_string(ProbeFlows::kFrameBytes) + " are allowed");
  }
  return flows_.get_receive_buffer();
}

void Prober::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  const auto frame = frame_of<ProbeFrame>(header);
  if (!frame.is_message()) {
    if (!stopped_) flows_.arrived(peer, header);
    return;
  }
  const auto at = std::find_if(incoming_.begin(), incoming_.end(), [payload](const Message& m) {
    return reinterpret_cast<const std::byte*>(m.data()) == payload;
  });
  if (at == incoming_.end()) return;
  Message message = std::move(*at);
  message.resize(header.length);
  incoming_.erase(at);
  if (!stopped_) take_message(peer, frame, message);
}

}  // namespace riffle
