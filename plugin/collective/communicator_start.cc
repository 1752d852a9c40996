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
#include "plugin/config/log.h"
#include "plugin/transport/tcp/stream_set.h"
#include "topology/base/time.h"

namespace riffle::coll {
namespace {

// What is wanted, as far as it is possible among so many nodes.
SyncSettings sync_among(SyncSettings sync, int size, bool says) {
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
                         std::unique_ptr<TcpListener> listener, int device) {
  const std::uint64_t number = handles.front().communicator;
  const SyncSettings sync = sync_among(options_.connect.sync, size_, rank_ == 0);
  recording_ = Recording::begin(reactor_.get(), number, rank_, size_, options_.connect.sync.shadow);
  SessionOptions options = session_options(sync);
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
  session_ = std::make_unique<Session>(rank_, size_, options, reactor_.get(),
                                       session_hooks(sync, options, report, device, number));

  TcpMeshOptions mesh_options;
  mesh_options.streams = streams_to_each_of(size_ - 1);
  mesh_options.peer_timeout_ns = options.peer_timeout_ns;
  mesh_options.connect_timeout_ns = options.connect_timeout_ns;
  mesh_ = make_tcp_mesh(*reactor_, std::move(listener), std::move(handles), rank_, mesh_options,
                        session_->sink());
  session_->start(mesh_.get(), std::move(report));
}

SessionOptions Communicator::session_options(const SyncSettings& sync) {
  SessionOptions options = options_.session;
  if (recording_) options.engine.counters = recording_->counters();
  options.engine.max_operations =
      sync.mode == SyncMode::kExact ? kMaxRequests : static_cast<int>(kMaxOperations);
  if (options.replan.least_kbps > 0 && rank_ == 0 &&
      (!options.survivors.is_on || options.replan.collectives == 0)) {
    log_warn(
        "RIFFLE_MIN_RATE has no effect without RIFFLE_ON_LOSS=continue and replanning intervals "
        "(RIFFLE_EPOCH above 0, RIFFLE_DETERMINISTIC=0)");
  }
  options.replan.mode = sync.mode;
  return options;
}

SessionHooks Communicator::session_hooks(const SyncSettings& sync, const SessionOptions& options,
                                         const NodeReport& report, int device,
                                         std::uint64_t number) {
  SessionHooks hooks;
  hooks.wants_probe = [this](const std::vector<NodeReport>& reports, std::vector<int>* racks) {
    racks_ = racks_from_file(options_.connect, reports);
    if (racks_) *racks = racks_->rack_of;
    if (!riffle::wants_probe(options_.connect, reports)) return false;
    network_ = remembered_network(options_.connect, reports);
    return !network_.has_value();
  };
  hooks.probe_turn = [number] { return try_node_lock(number); };
  hooks.knows_network = [this](const std::vector<NodeReport>& reports) {
    return remembered_network(options_.connect, reports).has_value();
  };
  hooks.probed = [this, device](const std::vector<NodeReport>& reports,
                                const ProbeOutcome& outcome) {
    if (outcome.findings.rounds == 0) network_ = remembered_network(options_.connect, reports);
    if (network_) return;
    network_ =
        probed_network(options_.connect, outcome, reports, device, racks_ ? &*racks_ : nullptr);
    // Also if NCCL's ring turns out to be better: then no verdict brings it.
    if (network_) remember_network(network_text(*network_));
  };
  hooks.decide = [this](const std::vector<NodeReport>& reports) {
    return riffle::decide(options_.connect, reports, network_ ? &*network_ : nullptr,
                          racks_ ? &*racks_ : nullptr, &basis_);
  };
  hooks.basis = [this] { return basis_; };
  // Without our tuner nobody counts collectives, but operations are there to count.
  hooks.replan.count = [this] {
    const std::uint64_t collectives = counted_collectives();
    return collectives > 0 ? collectives : operations_;
  };
  hooks.replan.observer = recording_.get();
  hooks.replan.party = relaxed_.get();
  hooks.replan.relaxed_plans = [sync](const Fabric& fabric) { return relaxed_plans(fabric, sync); };
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
