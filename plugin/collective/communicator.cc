#include "plugin/collective/communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "plugin/collective/base/agreement.h"
#include "plugin/collective/connect/decision.h"
#include "plugin/config/caught.h"
#include "plugin/config/log.h"
#include "plugin/identity/identity.h"
#include "plugin/transport/base/transport_mesh.h"
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

// What a slower network has not delivered by then, destroy does not wait for.
constexpr std::chrono::seconds kLongestDelivery(5);

bool overlaps(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

// ------------------------------------------------------------------------------- service thread

Communicator::Communicator(std::shared_ptr<const Transport> transport, int rank, int size,
                           CollectiveOptions options)
    : transport_(std::move(transport)),
      rank_(rank),
      size_(size),
      options_(std::move(options)),
      reactor_(options_.connect.threads > 1 ? Reactor::acquire(transport_->options(), 0)
                                            : Reactor::acquire(transport_->options())),
      timers_(reactor_.get(), [this](const Status& why) { on_failure(why); }),
      outcome_(std::make_shared<Outcome>()) {
  for (std::size_t i = 1; i < static_cast<std::size_t>(options_.connect.threads); ++i) {
    further_.push_back(Reactor::acquire(transport_->options(), i));
  }
  for (Request& r : requests_) r.owner = this;
}

Result<std::unique_ptr<Communicator>> Communicator::connect(
    std::shared_ptr<const Transport> transport, std::vector<HandleContent> handles, int rank,
    std::uint64_t comm_id, std::unique_ptr<TransportListener> listener, CollectiveOptions options) {
  const std::uint64_t timeout_ns = options.session.connect_timeout_ns;
  const int size = static_cast<int>(handles.size());
  NodeReport report =
      own_report(options.connect, rank, listener->device(), agreement::job_key(comm_id));
  options.connect.threads = common_threads(handles);
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

// (On the reactor thread.)
void Communicator::tell_outcome(const Status& outcome, bool falls_back) {
  const std::lock_guard lock(outcome_->mutex);
  if (std::exchange(outcome_->is_known, true)) return;
  outcome_->status = outcome;
  outcome_->falls_back = falls_back;
  outcome_->changed.notify_all();
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
  if (communicator != nullptr) {
    const std::shared_ptr<Deliveries> deliveries = communicator->deliveries_;
    communicator.reset();  // which does the rest
    (void)deliveries->wait(kLongestDelivery);
    return;
  }
  reactor->run_and_wait([] {});
  if (recording) recording->flush();
}

Communicator::~Communicator() {
  for (Request& r : requests_) {
    if (r.is_large) reactor_->keep_thread(-1);  // NCCL aborts
  }
  reactor_->run_and_wait([this] { stop(); });
  if (recording_ && !is_close_deferred_) recording_->flush();
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
  mark_running(request, request->bytes > reactor_->polling().bytes);
  post(&request->operation);  // worked on by the first test(): NCCL posts several calls at a time
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
  if (state == Operation::State::kFailed) {
    failed_inputs_.push_back(std::move(request->staged.input));
    free_request(request);
    const std::lock_guard lock(error_mutex_);
    return remote_error(error_);
  }
  free_request(request);
  RIFFLE_CHECK(state == Operation::State::kDone, "test of a request that is not in flight");
  if (bytes != nullptr) *bytes = static_cast<int>(request->bytes);
  return true;
}

}  // namespace riffle::coll
