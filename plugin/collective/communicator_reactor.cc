// Communicator, what of it runs on the reactor thread: it makes its session, hands operations on,
// fails and ends.
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "plugin/collective/base/collective_count.h"
#include "plugin/collective/base/node_lock.h"
#include "plugin/collective/base/thread_time.h"
#include "plugin/collective/communicator.h"
#include "plugin/collective/connect/decision.h"
#include "plugin/collective/connect/live_network.h"
#include "plugin/collective/sparse/sparse_choice.h"
#include "plugin/config/caught.h"
#include "plugin/config/fault_log.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/reactor/open_files.h"
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
      log_warn(
          "RIFFLE_SPARSE_TEAMS={} does not divide the {} nodes: accepted are its divisors, "
          "or 0; sums are exact",
          sync.sparse.teams, size);
    }
    sync.mode = SyncMode::kExact;
  }
  return sync;
}

}  // namespace

void Communicator::start(std::vector<HandleContent> handles, NodeReport report,
                         std::unique_ptr<TransportListener> listener) {
  const std::uint64_t number = handles.front().communicator;
  const SyncSettings sync = sync_among(options_.connect.sync, size_, rank_ == 0);
  recording_ = Recording::begin(options_.record, &timers_, number, rank_, size_,
                                options_.connect.sync.shadow);
  SessionOptions options = session_options(sync);
  if (sync.mode != SyncMode::kExact) {
    relaxed_ = std::make_unique<RelaxedCalls>(
        RelaxedOptions{.settings = sync,
                       .rank = rank_,
                       .size = size_,
                       .chunk_bytes = options.engine.chunk_bytes},
        RelaxedCalls::Hooks{.identify = [this](const CallShape& shape) { return identify(shape); },
                            .post = [this](Operation* operation) { post(operation); }});
    if (recording_) recording_->watch([this] { return relaxed_->counts().totals(); });
    if (sync.mode == SyncMode::kSparse) {
      options.sparse = SparseRunner::Options{
          .most_elements = SparseRun::most_elements(options.engine.chunk_bytes / sizeof(float)),
          .counters = options.engine.counters,
          .work = relaxed_->sparse_work()};
    }
  }
  background_ =
      std::make_unique<BackgroundThread>(reactor_, [this](const Status& why) { on_failure(why); });
  decision_ = std::make_unique<NetworkDecision>(options_.connect, listener->device());
  options.background = background_.get();
  session_ = std::make_unique<Session>(rank_, size_, options, &timers_,
                                       session_hooks(sync, options, report, number));

  mesh_ = transport_->make_mesh(*reactor_, std::move(listener), std::move(handles), rank_,
                                {.peer_timeout_ns = options.peer_timeout_ns,
                                 .connect_timeout_ns = options.connect_timeout_ns,
                                 .further = further_,
                                 .deliveries = deliveries_},
                                session_->sink());
  if (report.problem.empty() && options_.connect.collnet != Wish::kOff) {
    report.problem = lack_of_open_files(mesh_->descriptors_to_open());
  }
  session_->start(mesh_.get(), std::move(report), mesh_->parts());
}

SessionOptions Communicator::session_options(const SyncSettings& sync) {
  SessionOptions options = options_.session;
  if (recording_) {
    options.engine.counters = recording_->counters();
    options.engine.trace = recording_->trace();
  }
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
                                         const NodeReport& report, std::uint64_t number) {
  SessionHooks hooks;
  hooks.wants_probe = [this](const std::vector<NodeReport>& reports, probe::KnownRacks* known) {
    return decision_->look_up(reports, known);
  };
  hooks.probe_turn = [number] { return try_node_lock(number); };
  hooks.knows_network = [this](const std::vector<NodeReport>& reports) {
    return decision_->knows_network(reports);
  };
  hooks.probed = [this](const std::vector<NodeReport>& reports, const ProbeOutcome& outcome) {
    decision_->probed(reports, outcome);
  };
  hooks.decide = [this](const std::vector<NodeReport>& reports) {
    return decision_->decide(reports);
  };
  hooks.basis = [this] { return decision_->basis(); };
  hooks.replan = replan_hooks(sync, options, report);
  hooks.planned = [this](const Verdict& verdict) {
    knows_lengths_ = verdict.knows_lengths;
    remember_network(verdict.network);
    if (recording_) recording_->planned(verdict, rank_ == 0 ? &decision_->basis() : nullptr);
    if (rank_ == 0) log_info("plan for {} nodes: {}", size_, verdict.reason);
  };
  hooks.connected = [this](const Status& outcome, const std::string& fallback_reason) {
    finish_connect(outcome, fallback_reason);
  };
  hooks.failed = [this](const std::string& why) { failed(why); };
  hooks.broke = [this](const Status& why) { on_failure(why); };
  hooks.went_on = [this](const LossRecord& loss, const std::string& what) {
    if (recording_) recording_->survived(loss, what);
    log_warn("rank {} of {}: {}", rank_, size_, what);
  };
  return hooks;
}

ReplanHooks Communicator::replan_hooks(const SyncSettings& sync, const SessionOptions& options,
                                       const NodeReport& report) {
  ReplanHooks hooks;
  // Without the tuner plugin collectives are not counted, but operations are there to count.
  hooks.count = [this] {
    const std::uint64_t collectives = counted_collectives();
    return collectives > 0 ? progress_.update(collectives, operations_) : operations_;
  };
  hooks.observer = recording_.get();
  // (Later NCCL's thread may ask, while it does the reactor's work.)
  hooks.wanted_ns = [thread = pid_t{0}]() mutable {
    if (thread == 0) thread = static_cast<pid_t>(syscall(SYS_gettid));
    return thread_wanted_ns(thread);
  };
  if (relaxed_) hooks.participant = relaxed_->participant();
  hooks.relaxed_plans = [sync](const Fabric& fabric, bool is_told) {
    return relaxed_plans(fabric, sync, is_told);
  };
  // (Groups of shadow_sync are chosen by how they mix, too.)
  if (sync.mode != SyncMode::kShadowSync) hooks.step_us = relaxed_step_us;
  // (After losses any node may be the lowest that is left.)
  if (sync.mode == SyncMode::kSparse && (rank_ == 0 || options.survivors.is_on)) {
    hooks.sparse_order = [this, sync, speed = report.speed,
                          chunk = options.engine.chunk_bytes / sizeof(float),
                          mbps = sparse::measure_exchange_mbps()](
                             const Fabric& fabric, const PlanSet& exact) -> Result<SparseOrder> {
      const std::shared_ptr<const KnownCalls> known = relaxed_->known();
      if (known == nullptr) return invalid_argument("the calls do not repeat");
      return choose_sparse(fabric, exact, known->pieces, sync, chunk, {speed, mbps});
    };
  }
  return hooks;
}

void Communicator::finish_connect(const Status& outcome, const std::string& fallback_reason) {
  if (recording_ && fallback_reason.empty()) recording_->connected(outcome, mesh_.get());
  if (recording_ && !fallback_reason.empty()) recording_->failed(kFallback + fallback_reason);
  if (!fallback_reason.empty() && rank_ == 0) {
    log_info("all-reduces of {} nodes stay with NCCL: {}", size_, fallback_reason);
  }
  tell_outcome(outcome, !fallback_reason.empty());
}

// Ends everything, whatever of the telling goes wrong: peers that heard nothing see broken links.
void Communicator::abort(const std::string& fault, const std::string& why) {
  catching([&] { session_->abort(fault, why); },
           [&](const Status&) {
             catching([&] { failed(why); }, [](const Status&) {});
             if (mesh_) mesh_->abort();
             session_->fail_operations();
           });
}

// The state that an exception leaves behind is not known, but for this: what is in the ring, and
// the operation that was being handed on. Both end as failed.
void Communicator::on_failure(const Status& why) {
  if (error_due_ns_ == 0) error_due_ns_ = Reactor::now_ns() + Session::kTellNs;
  if (session_) {
    std::string fault = "internal error";  // short enough to need no memory
    catching([&] { fault = session_->own_name() + ": " + why.message(); }, [](const Status&) {});
    abort(fault, fault);
  }
  if (Operation* const o = std::exchange(in_hand_, nullptr)) {
    auto running = Operation::State::kRunning;
    o->state.compare_exchange_strong(running, Operation::State::kFailed, std::memory_order_release);
  }
  if (posted_head_ != posted_tail_) reactor_->wake(this);
  // A connect in doubt is not over yet, as others may have succeeded; but it throws only once.
  const bool is_in_doubt = session_ && session_->is_connecting() && !is_broken_;
  is_broken_ = true;
  if (!is_in_doubt) tell_outcome(why, false);
}

void Communicator::failed(const std::string& why) {
  has_failed_ = true;
  {
    const std::lock_guard lock(error_mutex_);
    error_ = why;
  }
  if (recording_) recording_->failed(why);
  log_fault("rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " + why,
            why.starts_with("excluded"));
}

// True: from now on it belongs to the reactor.
bool Communicator::defer_close() {
  if (!relaxed_ || !session_) return false;
  for (const Request& r : requests_) {
    if (r.operation.state.load(std::memory_order_acquire) == Operation::State::kRunning)
      return false;
  }
  on_wake();  // rounds that were begun last
  if (!session_->retire([this] { end_deferred(); })) return false;
  relaxed_->fence();
  if (recording_) recording_->end();
  is_close_deferred_ = true;
  return true;
}

void Communicator::end_deferred() {
  if (background_->is_busy()) {
    constexpr std::uint64_t kLookAgainNs = kSecond / 100;
    timers_.call_at(Reactor::now_ns() + kLookAgainNs, [this] { end_deferred(); });
    return;
  }
  delete this;
}

// All of it happens, whatever throws: nothing of a communicator outlives it on the reactor.
void Communicator::stop() {
  reactor_->forget(this);
  const auto warn = [](const Status& why) { log_caught("closing", why); };
  bool clean = false;
  catching([this] { end_record(); }, warn);
  catching([&] { clean = session_ && session_->end(); }, warn);
  timers_.clear();
  if (background_) background_->stop();
  if (!mesh_) return;
  catching([&] { clean ? mesh_->close() : mesh_->abort(); }, warn);
  mesh_.reset();
}

void Communicator::end_record() {
  if (recording_ && !is_close_deferred_) recording_->end();
  if (!relaxed_ || rank_ != 0) return;
  const std::string work = describe(*relaxed_->sparse_work());
  if (!work.empty()) log_info("sparse work: {}", work);
}

// An operation leaves the ring before it is handed on: were it to throw, it is not handed on again.
void Communicator::on_wake() {
  std::uint64_t head = posted_head_.load(std::memory_order_relaxed);
  while (head != posted_tail_.load(std::memory_order_acquire)) {
    in_hand_ = posted_[head % posted_.size()];
    posted_head_.store(++head, std::memory_order_relaxed);
    ++operations_;
    session_->submit(in_hand_);
    in_hand_ = nullptr;
  }
}

}  // namespace riffle::coll
