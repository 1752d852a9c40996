#include "lab/simulation/job.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "lab/simulation/dry_calls.h"
#include "lab/simulation/link_rates.h"
#include "lab/simulation/sim_background.h"
#include "topology/probe/live_fabric.h"

namespace riffle::sim {
namespace {

std::string name_of(const Fabric& fabric, int rank) {
  const std::string& name = fabric.nodes[rank].name;
  return name.empty() ? "host" + std::to_string(rank) : name;
}

// A reader of the record needs it.
bool has_content(const FrameHeader& header) {
  if (header.type == FrameType::kProbe)
    return frame_of<ProbeFrame>(header).step != ProbeFrame::kData;
  return header.type != FrameType::kData;
}

SimOptions network_options(const Fabric& fabric, SimOptions options) {
  if (options.tick_ns == 0) {
    // A sixteenth of what a probe's frame takes on the fastest link.
    std::int64_t fastest_kbps = 1;
    for (const NodeLink& node : fabric.nodes) fastest_kbps = std::max(fastest_kbps, node.out_kbps);
    options.tick_ns = std::max<std::uint64_t>(
        1, ProbeFlows::kFrameBytes * 8'000'000 / 16 / static_cast<std::uint64_t>(fastest_kbps));
  }
  options.carries_payload = true;
  options.early_headers = false;
  options.poisons = false;
  return options;
}

}  // namespace

class Job::Recorder final : public ReplanObserver {
 public:
  void on_replan(const ReplanEvent& event) override { events.push_back(event); }
  std::vector<ReplanEvent> events;
};

class Job::Node final : private FrameSink {
 public:
  Node(Job* job, int rank)
      : job_(job),
        rank_(rank),
        background_(&job->network_, rank, [job] { return job->options_.planning_ns; }),
        session_(rank, job->fabric_.size(), session_options(), &job->network_.timers(rank),
                 hooks()),
        calls_(job->options_.call_bytes, job->options_.outstanding,
               [this](Operation* operation) { session_.submit(operation); }) {
    job->network_.set_sink(rank, this);
  }
  ~Node() override {
    (void)session_.end();
    background_.stop();
  }

  void start() {
    NodeReport report;
    report.rank = rank_;
    report.host = name_of(job_->fabric_, rank_);
    session_.start(&job_->network_.mesh(rank_), report);
  }
  const std::optional<Status>& outcome() const { return outcome_; }
  const std::string& failure() const { return failure_; }
  DryCalls& calls() { return calls_; }

 private:
  SessionOptions session_options() {
    SessionOptions options = job_->options_.session;
    options.engine.has_blocks = false;
    options.engine.max_operations =
        std::max(options.engine.max_operations, job_->options_.outstanding);
    options.background = &background_;
    return options;
  }
  SessionHooks hooks() {
    SessionHooks hooks;
    hooks.wants_probe = [job = job_](const std::vector<NodeReport>&, probe::KnownRacks* known) {
      known->rack_of = job->options_.racks;
      return job->options_.probes;
    };
    hooks.probed = [job = job_](const std::vector<NodeReport>&, const ProbeOutcome& outcome) {
      job->probed_ = outcome;
    };
    hooks.decide = [job = job_](const std::vector<NodeReport>& reports) {
      return job->decide(reports);
    };
    hooks.basis = [job = job_] { return job->basis_; };
    hooks.replan.count = [job = job_] { return job->collectives_; };
    hooks.replan.observer = rank_ == 0 ? job_->recorder_.get() : nullptr;
    hooks.connected = [this](Status outcome, const std::string& fallback_reason) {
      outcome_ = std::move(outcome);
      if (fallback_reason.empty()) return;
      static_cast<void>(session_.end());
      job_->network_.close(rank_);
    };
    hooks.failed = [this](const std::string& why) { failure_ = why; };
    return hooks;
  }

  void opened(int peer) override { session_.sink()->opened(peer); }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    return session_.sink()->get_receive_buffer(peer, header);
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
    if (header.type == FrameType::kProbe) job_->saw_probe_frame(peer, rank_, header);
    session_.sink()->arrived(peer, header, payload);
    calls_.progress();
  }
  void sent(int peer, std::uint64_t cookie) override {
    session_.sink()->sent(peer, cookie);
    calls_.progress();
  }
  void departed(int peer) override { session_.sink()->departed(peer); }
  void lost(int peer, const Status& why) override { session_.sink()->lost(peer, why); }

  Job* const job_;
  const int rank_;
  SimBackground background_;
  Session session_;
  DryCalls calls_;
  std::optional<Status> outcome_;
  std::string failure_;
};

Job::Job(const Fabric& fabric, const JobOptions& options)
    : fabric_(fabric),
      options_(options),
      network_(fabric, network_options(fabric, options.network)),
      met_(fabric.nodes.size() * fabric.nodes.size(), false),
      recorder_(std::make_unique<Recorder>()) {
  network_.carry_only(has_content);
  for (int r = 0; r < fabric_.size(); ++r) nodes_.push_back(std::make_unique<Node>(this, r));
}
Job::~Job() = default;

const std::vector<ReplanEvent>& Job::events() const { return recorder_->events; }

void Job::saw_probe_frame(int from, int to, const FrameHeader& header) {
  if (frame_of<ProbeFrame>(header).step == ProbeFrame::kData) {
    traffic_.flow_bytes += header.length;
    const std::size_t pair = static_cast<std::size_t>(from) * nodes_.size() + to;
    if (!met_[pair]) ++traffic_.pairs;
    met_[pair] = true;
  } else if (header.length > 0) {
    traffic_.message_bytes += kFrameHeaderBytes + header.length;
  } else {
    ++traffic_.answers;
  }
}

// As production does it (plugin/collective/connect/decision.h), without its knobs.
Verdict Job::decide(const std::vector<NodeReport>& reports) {
  Verdict verdict;
  for (const NodeReport& r : reports) verdict.hosts.push_back(r.host);
  verdict.fallback_reason = options_.fallback_reason;
  if (!verdict.fallback_reason.empty()) return verdict;
  Result<Fabric> known = link_rates(options_.told.value_or(fabric_));
  if (options_.probes) known = probe::to_fabric(probed_.findings, verdict.hosts, kSimMtu);
  if (!known) {
    verdict.problem = known.status().message();
    return verdict;
  }
  basis_ = {*known, false};
  basis_.has_seen_pairs = options_.probes || options_.has_seen_pairs;
  Result<PlanChoice> choice =
      plan(*known, options_.session.replan.planned_bytes, options_.session.replan.plan);
  if (!choice) {
    verdict.problem = choice.status().message();
    return verdict;
  }
  choice_ = std::move(*choice);
  verdict.plans = encode(choice_.plans);
  verdict.digest = digest(choice_.plans);
  return verdict;
}

Status Job::connect() {
  for (const auto& node : nodes_) node->start();
  std::size_t known = 0;
  while (known < nodes_.size()) {
    if (nodes_[known]->outcome().has_value()) {
      ++known;
    } else if (!network_.step()) {
      return internal_error("node " + std::to_string(known) + " never connects");
    }
  }
  connect_ns_ = network_.now_ns();
  for (const auto& node : nodes_) {
    if (!*node->outcome()) return *node->outcome();
  }
  return Status::ok();
}

Result<double> Job::all_reduce_us(std::uint64_t bytes) {
  const std::uint64_t begin_ns = network_.now_ns();
  ++collectives_;
  for (const auto& node : nodes_) node->calls().begin(bytes);
  std::size_t finished = 0;
  while (finished < nodes_.size()) {
    Node& node = *nodes_[finished];
    if (!node.failure().empty()) {
      return remote_error("node " + std::to_string(finished) + ": " + node.failure());
    }
    if (node.calls().is_finished()) {
      ++finished;
    } else if (!network_.step()) {
      return internal_error("deadlock: node " + std::to_string(finished) +
                            " waits and nothing is under way");
    }
  }
  return static_cast<double>(network_.now_ns() - begin_ns) / 1e3;
}

}  // namespace riffle::sim
