// Communicator, part 2: how its session is set up from knobs and from what this node knows. Reactor
// thread.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/base/collective_count.h"
#include "plugin/collective/base/node_lock.h"
#include "plugin/collective/communicator.h"
#include "plugin/collective/connect/decision.h"
#include "plugin/collective/connect/live_network.h"
#include "plugin/collective/sparse/sparse_choice.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"
#include "topology/base/time.h"

namespace riffle::coll {
namespace {

// What is wanted, as far as it is possible among so many nodes.
SyncSettings sync_among(int size, bool says) {
  SyncSettings sync = sync_settings();
  for (const std::string& line : {sync.refusal, sync.note}) {
    if (!line.empty() && says) log_warn(line);
  }
  if (sync.mode == SyncMode::kSparse && sync.sparse.teams > 0 &&
      size % static_cast<int>(sync.sparse.teams) != 0) {
    if (says) {
      log_warn("RIFFLE_SPARSE_TEAMS=" + std::to_string(sync.sparse.teams) +
               " does not divide the " + std::to_string(size) +
               " nodes: accepted are its divisors, or 0; sums are exact");
    }
    sync.mode = SyncMode::kExact;
  }
  return sync;
}

}  // namespace

void Communicator::start(std::vector<HandleContent> handles, NodeReport report,
                         std::unique_ptr<TransportListener> listener, std::uint64_t timeout_ns) {
  const std::uint64_t number = handles.front().communicator;
  recording_ = Recording::begin(reactor_.get(), number, rank_, size_);
  const SyncSettings sync = sync_among(size_, rank_ == 0);
  SessionOptions options = session_options(sync, timeout_ns);
  if (sync.mode != SyncMode::kExact) {
    relaxed_ = std::make_unique<RelaxedCalls>(
        RelaxedOptions{.settings = sync,
                       .rank = rank_,
                       .size = size_,
                       .chunk_bytes = options.engine.chunk_bytes},
        RelaxedCalls::Hooks{.identify = [this](const CallShape& shape) { return identify(shape); },
                            .post = [this](Operation* operation) { post(operation); }});
    if (recording_) recording_->watch([this] { return relaxed_->totals(); });
    if (sync.mode == SyncMode::kSparse) {
      options.sparse = SparseRunner::Options{
          .most_elements = SparseRun::most_elements(options.engine.chunk_bytes / sizeof(float)),
          .counters = options.engine.counters,
          .work = relaxed_->sparse_work()};
    }
  }
  background_ = std::make_unique<BackgroundThread>(reactor_);
  options.background = background_.get();
  session_ =
      std::make_unique<Session>(rank_, size_, options, reactor_.get(),
                                session_hooks(sync, options, report, listener->device(), number));

  mesh_ = transport_->make_mesh(
      *reactor_, std::move(listener), std::move(handles), rank_,
      {.peer_timeout_ns = options.peer_timeout_ns, .connect_timeout_ns = timeout_ns},
      session_->sink());
  session_->start(mesh_.get(), std::move(report));
}

SessionOptions Communicator::session_options(const SyncSettings& sync, std::uint64_t timeout_ns) {
  SessionOptions options;
  if (recording_) options.engine.counters = recording_->counters();
  options.engine.chunk_bytes = static_cast<std::size_t>(config().chunk_bytes);
  options.engine.piece_bytes = static_cast<std::size_t>(config().piece_bytes);
  options.engine.max_operations =
      sync.mode == SyncMode::kExact ? kMaxRequests : static_cast<int>(kMaxOperations);
  options.connect_timeout_ns = timeout_ns;
  options.peer_timeout_ns = static_cast<std::uint64_t>(config().peer_timeout_s) * kSecond;
  options.replan.collectives =
      config().deterministic ? 0 : static_cast<std::uint64_t>(config().epoch);
  options.replan.planned_bytes = kPlannedBytes;
  options.replan.plan = plan_options();
  options.survivors.is_on = config().on_loss == "continue";
  options.survivors.rescales = config().rescale;
  options.replan.least_kbps = static_cast<std::int64_t>(config().min_rate) * 1000;
  if (config().min_rate > 0 && rank_ == 0 &&
      (!options.survivors.is_on || options.replan.collectives == 0)) {
    log_warn(
        "RIFFLE_MIN_RATE has no effect without RIFFLE_ON_LOSS=continue and replanning intervals "
        "(RIFFLE_EPOCH "
        "above 0, RIFFLE_DETERMINISTIC=0)");
  }
  options.replan.mode = sync.mode;
  options.replan.warmup_steps = sync.warmup_steps;
  return options;
}

SessionHooks Communicator::session_hooks(const SyncSettings& sync, const SessionOptions& options,
                                         const NodeReport& report, const Device& device,
                                         std::uint64_t number) {
  SessionHooks hooks;
  hooks.wants_probe = [this](const std::vector<NodeReport>& reports, std::vector<int>* racks) {
    racks_ = racks_from_file(reports);
    if (racks_) *racks = racks_->rack_of;
    if (!riffle::wants_probe(reports)) return false;
    network_ = remembered_network(reports);
    return !network_.has_value();
  };
  hooks.probe_turn = [number] { return try_node_lock(number); };
  hooks.knows_network = [](const std::vector<NodeReport>& reports) {
    return remembered_network(reports).has_value();
  };
  hooks.probed = [this, device = &device](const std::vector<NodeReport>& reports,
                                          const ProbeOutcome& outcome) {
    if (outcome.findings.rounds == 0) network_ = remembered_network(reports);
    if (network_) return;
    network_ = probed_network(outcome, reports, *device, racks_ ? &*racks_ : nullptr);
    // Also if NCCL's ring turns out to be better: then no verdict brings it.
    if (network_) remember_network(network_text(*network_));
  };
  hooks.decide = [this](const std::vector<NodeReport>& reports) {
    return riffle::decide(reports, network_ ? &*network_ : nullptr, racks_ ? &*racks_ : nullptr,
                          &basis_);
  };
  hooks.basis = [this] { return basis_; };
  // Without our tuner nobody counts collectives, but operations are there to count.
  hooks.replan.count = [this] {
    const std::uint64_t collectives = counted_collectives();
    return collectives > 0 ? collectives : operations_;
  };
  hooks.replan.observer = recording_.get();
  hooks.replan.party = relaxed_.get();
  hooks.replan.relaxed_plans = [mode = sync.mode](const Fabric& fabric) {
    return relaxed_plans(fabric, mode);
  };
  // (After losses any node may be the lowest that is left.)
  if (sync.mode == SyncMode::kSparse && (rank_ == 0 || options.survivors.is_on)) {
    hooks.replan.sparse_order =
        [this, sync, speed = report.speed, chunk = options.engine.chunk_bytes / sizeof(float),
         mbps = sparse::measure_exchange_mbps()](const Fabric& fabric,
                                                 const PlanSet& exact) -> Result<SparseOrder> {
      const std::shared_ptr<const KnownCalls> known = relaxed_->known();
      if (known == nullptr) return invalid_argument("the calls do not repeat");
      return choose_sparse(fabric, exact, known->pieces, sync, chunk, {speed, mbps});
    };
  }
  hooks.planned = [this](const Verdict& verdict) {
    knows_lengths_ = verdict.knows_lengths;
    remember_network(verdict.network);
    if (recording_) recording_->planned(verdict, rank_ == 0 ? &basis_.fabric : nullptr);
    if (rank_ == 0) log_info("plan for " + std::to_string(size_) + " nodes: " + verdict.reason);
  };
  hooks.connected = [this](Status outcome, const std::string& aside) {
    connect_is_over(std::move(outcome), aside);
  };
  hooks.failed = [this](const std::string& why) { failed(why); };
  hooks.went_on = [this](const LossRecord& loss, const std::string& what) {
    if (recording_) recording_->survived(loss);
    log_warn("rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " + what);
  };
  return hooks;
}

}  // namespace riffle::coll
