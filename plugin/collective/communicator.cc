#include "plugin/collective/communicator.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "plugin/collective/base/agreement.h"
#include "plugin/collective/base/collective_count.h"
#include "plugin/collective/base/node_lock.h"
#include "plugin/collective/base/thread_time.h"
#include "plugin/collective/connect/decision.h"
#include "plugin/collective/connect/live_network.h"
#include "plugin/collective/sparse/sparse_choice.h"
#include "plugin/config/fault_log.h"
#include "plugin/config/log.h"
#include "plugin/identity/identity.h"
#include "plugin/transport/base/caught.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/reactor/open_files.h"
#include "topology/base/check.h"
#include "topology/base/time.h"

namespace riffle::coll {

struct Communicator::Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_known = false;
  bool falls_back = false;
  Status status;
};

namespace {

bool overlaps(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

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

// ------------------------------------------------------------------------------- service thread

Communicator::Communicator(std::shared_ptr<const Transport> transport, int rank, int size,
                           CollectiveOptions options)
    : transport_(std::move(transport)),
      rank_(rank),
      size_(size),
      options_(std::move(options)),
      reactor_(Reactor::acquire(transport_->options())),
      timers_(reactor_.get(), [this](const Status& why) { on_failure(why); }),
      outcome_(std::make_shared<Outcome>()) {
  for (Request& r : requests_) r.owner = this;
}

Result<std::unique_ptr<Communicator>> Communicator::connect(
    std::shared_ptr<const Transport> transport, std::vector<HandleContent> handles, int rank,
    std::uint64_t comm_id, std::unique_ptr<TransportListener> listener, CollectiveOptions options) {
  const std::uint64_t timeout_ns = options.session.connect_timeout_ns;
  const int size = static_cast<int>(handles.size());
  NodeReport report =
      own_report(options.connect, rank, listener->device(), agreement::job_key(comm_id));
  std::unique_ptr<Communicator> c(
      new Communicator(std::move(transport), rank, size, std::move(options)));
  if (c->options_.keep_bytes > 0) {
    auto kept = KeptInputs::make(c->options_.keep_bytes);
    if (!kept) return kept.status();
    c->kept_ = std::move(*kept);
  }
  c->reactor_->run_and_wait([&] {
    catching([&] { c->start(std::move(handles), std::move(report), std::move(listener)); },
             [&](const Status& why) {
               c->on_failure(why);
               c->tell_outcome(why, false);  // no other node can have succeeded without this one
             });
  });
  // The reactor always reports an outcome; the margin is for a machine that was suspended.
  std::unique_lock lock(c->outcome_->mutex);
  const bool known =
      c->outcome_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns + 10 * kSecond),
                                    [&] { return c->outcome_->is_known; });
  if (!known) return timeout_error("connect: the progress thread does not answer");
  if (!c->outcome_->status) return c->outcome_->status;
  if (c->outcome_->falls_back) return std::unique_ptr<Communicator>();
  if (c->knows_lengths_) c->told_ = known_lengths::of(comm_id);
  if (c->told_) c->told_->store(c->size_, std::memory_order_release);
  return c;
}

void Communicator::close(std::unique_ptr<Communicator> communicator) {
  // What is said when its close is deferred leaves in the reactor's next turn, and the process may
  // be about to end.
  const std::shared_ptr<Reactor> reactor = communicator->reactor_;
  std::shared_ptr<Recording> recording;
  reactor->run_and_wait([&] {
    if (!communicator->defer_close()) return;
    recording = communicator->recording_;
    static_cast<void>(communicator.release());
  });
  if (communicator != nullptr) return;  // its destructor does the rest
  reactor->run_and_wait([] {});
  if (recording) recording->flush();
}

Communicator::~Communicator() {
  for (Request& r : requests_) {
    if (r.is_large) reactor_->keep_thread(-1);  // NCCL aborts
  }
  reactor_->run_and_wait([this] { stop(); });
  if (is_close_deferred_) return;
  if (recording_) recording_->flush();
  transport_->settle();
}

void Communicator::fence(const void* base, std::size_t size) {
  reactor_->run_and_wait([&] {
    const auto let_go = [this] {
      if (relaxed_) relaxed_->fence();
      if (mesh_) mesh_->abort();
    };
    // What was under way when it failed may still wait to be sent, though its requests are over.
    if (has_failed_) return let_go();
    const auto* begin = static_cast<const std::byte*>(base);
    for (Request& r : requests_) {
      if (r.operation.state.load(std::memory_order_acquire) != Operation::State::kRunning) continue;
      if (!overlaps(begin, size, r.send_begin, r.send_bytes) &&
          !overlaps(begin, size, r.recv_begin, r.recv_bytes)) {
        continue;
      }
      // NCCL takes memory away under a running operation: it aborts. From now on it is not touched.
      abort("it aborted while a collective was running",
            "memory was deregistered while a collective was using it (NCCL aborts)");
      return let_go();
    }
  });
}

// -------------------------------------------------------------------------- NCCL's progress thread

Request* Communicator::take_request() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    Request& r = requests_[(next_request_ + i) % requests_.size()];
    if (r.operation.state.load(std::memory_order_relaxed) == Operation::State::kFree) {
      next_request_ = (next_request_ + i + 1) % requests_.size();
      return &r;
    }
  }
  return nullptr;
}

bool Communicator::keep_input(Request* request, std::size_t bytes) {
  Operation& o = request->operation;
  o.kept = nullptr;
  if (!kept_ || bytes == 0) return true;
  if (!overlaps(o.send, bytes, o.recv, bytes)) return true;
  if (bytes > kept_->capacity()) {
    if (!std::exchange(said_too_large_, true)) {
      log_warn(
          "an all-reduce in place of {} bytes cannot be repeated if a node is lost while "
          "it runs: RIFFLE_KEEP_BYTES is {}",
          bytes, kept_->capacity());
    }
    return true;
  }
  o.kept = kept_->keep(o.send, bytes);
  return o.kept != nullptr;
}

void Communicator::give_back_kept(Request* request) {
  Operation& o = request->operation;
  if (o.kept != nullptr) kept_->give_back(std::exchange(o.kept, nullptr));
}

void Communicator::post(Request* request) {
  mark_running(request, request->bytes > Reactor::kPolledBytes);
  post(&request->operation);
  if (!request->is_large) reactor_->poll();
}

void Communicator::mark_running(Request* request, bool is_large) {
  request->operation.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  request->is_large = is_large;
  if (is_large) reactor_->keep_thread(1);
}

void Communicator::free_request(Request* request) {
  if (std::exchange(request->is_large, false)) reactor_->keep_thread(-1);
  give_back_kept(request);
  request->operation.state.store(Operation::State::kFree, std::memory_order_relaxed);
}

const CallIdentity& Communicator::identify(const CallShape& shape) {
  identity_ = identity::identify(shape);
  return identity_;
}

void Communicator::post_exact(Request* request) {
  request->operation.valid = identity_.is_sure ? identity_.valid_elements : Operation::kUnknown;
  post(request);
}

bool Communicator::post_all_reduce(Request* request, const CallShape& shape) {
  identity_ = {};
  if (relaxed_ == nullptr) {
    if (shape.coll != 0) (void)identify(shape);
    post_exact(request);
    return true;
  }
  request->staged.kept = request->operation.kept;
  const RelaxedCalls::Answer answer = relaxed_->all_reduce(shape, &request->staged);
  if (answer == RelaxedCalls::Answer::kBusy) give_back_kept(request);
  request->is_staged = answer == RelaxedCalls::Answer::kStaged;
  if (request->is_staged) {
    mark_running(request, true);
  } else if (answer == RelaxedCalls::Answer::kExact) {
    if (!request->staged.input.empty()) request->operation.send = request->staged.input.data();
    post_exact(request);
  }
  return answer != RelaxedCalls::Answer::kBusy;
}

void Communicator::post(Operation* operation) {
  const std::uint64_t tail = posted_tail_.load(std::memory_order_relaxed);
  posted_[tail % posted_.size()] = operation;  // never full: as many places as operations
  posted_tail_.store(tail + 1, std::memory_order_release);
  reactor_->wake(this);
}

Result<bool> Communicator::test(Request* request, int* bytes) {
  Operation& o = request->operation;
  if (request->is_staged) {
    const Result<bool> finished = relaxed_->test(&request->staged);
    if (finished && !*finished) return false;
    request->is_staged = false;
    o.state.store(finished ? Operation::State::kDone : Operation::State::kFailed,
                  std::memory_order_relaxed);
  }
  Operation::State state = o.state.load(std::memory_order_acquire);
  if (state == Operation::State::kRunning && !request->is_large) {
    reactor_->poll();
    state = o.state.load(std::memory_order_acquire);
  }
  if (state == Operation::State::kRunning) return false;
  if (state == Operation::State::kFailed && Reactor::now_ns() < error_due_ns_) return false;
  free_request(request);
  if (state == Operation::State::kFailed) {
    const std::lock_guard lock(error_mutex_);
    return remote_error(error_);
  }
  RIFFLE_CHECK(state == Operation::State::kDone, "test of a request that is not in flight");
  if (bytes != nullptr) *bytes = static_cast<int>(request->bytes);
  return true;
}

// --------------------------------------------------------------------------------- reactor thread

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
                                 .connect_timeout_ns = options.connect_timeout_ns},
                                session_->sink());
  if (report.problem.empty() && options_.connect.collnet != Wish::kOff) {
    report.problem = lack_of_open_files(mesh_->descriptors_to_open());
  }
  session_->start(mesh_.get(), std::move(report));
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
  hooks.relaxed_plans = [sync](const Fabric& fabric) { return relaxed_plans(fabric, sync); };
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

void Communicator::tell_outcome(const Status& outcome, bool falls_back) {
  const std::lock_guard lock(outcome_->mutex);
  if (std::exchange(outcome_->is_known, true)) return;
  outcome_->status = outcome;
  outcome_->falls_back = falls_back;
  outcome_->changed.notify_all();
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
  if (clean) {
    mesh_->close();
  } else {
    mesh_->abort();
  }
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
