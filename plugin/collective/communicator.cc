#include "plugin/collective/communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "plugin/collective/decision.h"
#include "plugin/config/config.h"
#include "plugin/config/fault_log.h"
#include "plugin/config/log.h"
#include "plugin/policy/agreement.h"
#include "plugin/transport/stream_set.h"
#include "topology/base/check.h"

namespace riffle::coll {

struct Communicator::Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_known = false;
  bool steps_aside = false;
  Status status;
};

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// A node cut off from its parent gives up this much later than the node that names the culprit.
constexpr std::uint64_t kGraceNs = kSecond / 2;
// Time for the news of a fault to leave before we fail and the job, perhaps, ends.
constexpr std::uint64_t kTellNs = kSecond / 200;

std::uint64_t connect_timeout_ns() {
  return static_cast<std::uint64_t>(std::min(config().connect_timeout_s, config().peer_timeout_s)) *
         kSecond;
}

bool overlaps(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

// ------------------------------------------------------------------------------- service thread

Communicator::Communicator(int rank, int size)
    : rank_(rank),
      size_(size),
      reactor_(Reactor::acquire()),
      departed_(size, false),
      outcome_(std::make_shared<Outcome>()) {
  for (Request& r : requests_) r.owner = this;
}

Result<std::unique_ptr<Communicator>> Communicator::connect(std::vector<HandleContent> handles,
                                                            int rank, int device,
                                                            std::uint64_t comm_id,
                                                            std::unique_ptr<TcpListener> listener) {
  std::unique_ptr<Communicator> c(new Communicator(rank, static_cast<int>(handles.size())));
  NodeReport report = own_report(rank, device, agreement::job_key(comm_id));
  const std::uint64_t timeout_ns = connect_timeout_ns();
  c->reactor_->run_and_wait(
      [&] { c->start(std::move(handles), std::move(report), std::move(listener), timeout_ns); });
  // The reactor always reports an outcome; the margin is for a machine that was suspended.
  std::unique_lock lock(c->outcome_->mutex);
  const bool known =
      c->outcome_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns + 10 * kSecond),
                                    [&] { return c->outcome_->is_known; });
  if (!known) return timeout_error("connect: the progress thread does not answer");
  if (!c->outcome_->status) return c->outcome_->status;
  if (c->outcome_->steps_aside) return std::unique_ptr<Communicator>();
  return c;
}

Communicator::~Communicator() {
  reactor_->run_and_wait([this] { stop(); });
  if (recording_) recording_->flush();
}

void Communicator::fence(const void* base, std::size_t size) {
  reactor_->run_and_wait([&] {
    const auto* begin = static_cast<const std::byte*>(base);
    for (Request& r : requests_) {
      if (r.operation.state.load(std::memory_order_acquire) != Operation::State::kRunning) continue;
      if (!overlaps(begin, size, r.send_begin, r.send_bytes) &&
          !overlaps(begin, size, r.recv_begin, r.recv_bytes)) {
        continue;
      }
      // NCCL takes memory away under a running operation: it aborts. Nobody may touch it any more.
      tell_everybody("it aborted while a collective was running");
      fail("memory was deregistered while a collective was using it (NCCL aborts)");
      if (mesh_) mesh_->abort();
      return;
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

void Communicator::post(Request* request) {
  request->operation.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  const std::uint64_t tail = posted_tail_.load(std::memory_order_relaxed);
  posted_[tail % posted_.size()] = request;  // never full: as many places as requests
  posted_tail_.store(tail + 1, std::memory_order_release);
  reactor_->wake(this);
}

Result<bool> Communicator::test(Request* request, int* bytes) {
  Operation& o = request->operation;
  const Operation::State state = o.state.load(std::memory_order_acquire);
  if (state == Operation::State::kRunning) return false;
  o.state.store(Operation::State::kFree, std::memory_order_relaxed);
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
                         std::unique_ptr<TcpListener> listener, std::uint64_t timeout_ns) {
  for (int i = 0; i < size_; ++i) names_.push_back("node " + std::to_string(i));
  recording_ = Recording::begin(reactor_.get(), handles.front().communicator, rank_, size_);
  TcpMeshOptions options;
  options.streams = streams_to_each_of(size_ - 1);
  options.peer_timeout_ns = static_cast<std::uint64_t>(config().peer_timeout_s) * kSecond;
  options.connect_timeout_ns = timeout_ns;
  mesh_ = make_tcp_mesh(*reactor_, std::move(listener), std::move(handles), rank_, options, this);
  control_ = std::make_unique<ControlChannel>(
      mesh_.get(), [this](int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
        if (!bootstrap_->is_over()) {
          bootstrap_->received(peer, kind, message);
        } else if (kind == kFaultKind) {
          spread(std::string(message.begin(), message.end()),
                 name_of(peer) + " reports: " + std::string(message.begin(), message.end()));
        }
      });
  EngineOptions engine_options;
  engine_options.chunk_bytes = static_cast<std::size_t>(config().chunk_bytes);
  engine_options.piece_bytes = static_cast<std::size_t>(config().piece_bytes);
  engine_options.max_operations = kMaxRequests;
  if (recording_) engine_options.counters = recording_->counters();
  engine_ = std::make_unique<Engine>(mesh_.get(), engine_options,
                                     [this](int peer, const Status& why) { lost(peer, why); });
  BootstrapSteps steps;
  steps.decide = [this](const std::vector<NodeReport>& reports) {
    return riffle::decide(reports, &fabric_);
  };
  steps.install = [this](const PlanSet& plans, const Verdict& v) { return install(plans, v); };
  steps.finished = [this](Status outcome, const std::string& aside) {
    if (!aside.empty() && recording_) recording_->failed("all-reduces stay with NCCL: " + aside);
    if (!aside.empty() && rank_ == 0) {
      log_info("all-reduces of " + std::to_string(size_) + " nodes stay with NCCL: " + aside);
    }
    connect_is_over(std::move(outcome), !aside.empty());
  };
  bootstrap_ = std::make_unique<Bootstrap>(mesh_.get(), std::move(report), std::move(steps));
  bootstrap_->set_channel(control_.get());
  const std::uint64_t deadline = Reactor::now_ns() + timeout_ns + (rank_ == 0 ? 0 : kGraceNs);
  timer_ = reactor_->call_at(deadline, [this] {
    has_timer_ = false;
    bootstrap_->expire();
  });
  has_timer_ = true;
  bootstrap_->start();
}

Status Communicator::install(const PlanSet& plans, const Verdict& verdict) {
  if (recording_) recording_->planned(verdict, rank_ == 0 ? &fabric_ : nullptr);
  if (rank_ == 0) log_info("plan for " + std::to_string(size_) + " nodes: " + verdict.reason);
  for (int i = 0; i < size_ && i < static_cast<int>(verdict.hosts.size()); ++i) {
    names_[i] += " (" + verdict.hosts[i] + ")";
  }
  return engine_->install(plans);
}

void Communicator::connect_is_over(Status outcome, bool steps_aside) {
  if (has_timer_) reactor_->cancel(timer_);
  has_timer_ = false;
  if (recording_ && !steps_aside) recording_->connected(outcome, mesh_.get());
  const std::lock_guard lock(outcome_->mutex);
  outcome_->is_known = true;
  outcome_->status = std::move(outcome);
  outcome_->steps_aside = steps_aside;
  outcome_->changed.notify_all();
}

void Communicator::stop() {
  reactor_->forget(this);
  if (recording_) recording_->end();
  if (has_timer_) reactor_->cancel(timer_);
  has_timer_ = false;
  if (has_fault_timer_) reactor_->cancel(fault_timer_);
  has_fault_timer_ = false;
  if (!mesh_) return;
  const bool clean = engine_->is_idle() && !engine_->has_failed();
  const bool connected = bootstrap_->is_over();
  engine_->fail();
  // A clean end says goodbye and drains; so does a failed connect, whose last messages say why.
  if (clean && connected) {
    mesh_->close();
  } else {
    mesh_->abort();
  }
  mesh_.reset();
}

void Communicator::on_wake() {
  std::uint64_t head = posted_head_.load(std::memory_order_relaxed);
  for (; head != posted_tail_.load(std::memory_order_acquire); ++head) {
    Request* request = posted_[head % posted_.size()];
    if (!left_.empty()) fail(left_ + " closed its communicator; a further collective cannot end");
    engine_->submit(&request->operation);
  }
  posted_head_.store(head, std::memory_order_relaxed);
}

void Communicator::opened(int peer) { bootstrap_->opened(peer); }

Result<std::byte*> Communicator::place(int peer, const FrameHeader& header) {
  switch (header.type) {
    case FrameType::kData:
    case FrameType::kCredit:
      return engine_->place(peer, header);
    case FrameType::kControl:
    case FrameType::kFault:
      return control_->place(peer, header);
    default:
      return remote_error("a frame of type " + std::to_string(static_cast<int>(header.type)) +
                          " has no business here");
  }
}

void Communicator::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (header.type == FrameType::kData || header.type == FrameType::kCredit) {
    engine_->arrived(peer, header, payload);
  } else {
    control_->arrived(peer, header);
  }
}

void Communicator::sent(int /*peer*/, std::uint64_t cookie) {
  if (cookie == kNoCookie) return;
  if ((cookie & kControlCookie) != 0) {
    control_->sent(cookie);
  } else {
    engine_->sent(cookie);
  }
}

void Communicator::departed(int peer) {
  if (!bootstrap_->is_over()) {
    return bootstrap_->fail(name_of(peer) + " closed its communicator during connect");
  }
  departed_[peer] = true;
  if (left_.empty()) left_ = name_of(peer);
  // It has sent us all it ever will. What is running now should end by itself; if not, say so.
  if (!engine_->is_idle() && !has_timer_) watch_departed(peer);
}

void Communicator::watch_departed(int peer) {
  const std::uint64_t wait_ns = static_cast<std::uint64_t>(config().peer_timeout_s) * kSecond;
  has_timer_ = true;
  timer_ = reactor_->call_at(Reactor::now_ns() + wait_ns, [this, peer] {
    has_timer_ = false;
    if (!engine_->is_idle()) fail(name_of(peer) + " closed its communicator during a collective");
  });
}

void Communicator::lost(int peer, const Status& why) {
  const std::string sentence = "lost " + name_of(peer) + ": " + why.message();
  if (!bootstrap_->is_over()) return bootstrap_->fail(sentence);
  if (departed_[peer]) return;  // it had said goodbye
  spread(sentence, sentence);
}

// Everybody who learns of a fault passes it on and only then fails: a process that ends because of
// it must not look like the cause to those who have not heard yet.
void Communicator::spread(const std::string& fault, const std::string& why) {
  if (has_fault_timer_ || engine_->has_failed()) return;
  tell_everybody(fault);
  has_fault_timer_ = true;
  fault_timer_ = reactor_->call_at(Reactor::now_ns() + kTellNs, [this, why] {
    has_fault_timer_ = false;
    fail(why);
  });
}

void Communicator::fail(const std::string& why) {
  if (engine_->has_failed()) return;
  if (recording_) recording_->failed(why);
  {
    const std::lock_guard lock(error_mutex_);
    error_ = why;
  }
  log_fault("rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " + why);
  engine_->fail();
}

void Communicator::tell_everybody(const std::string& why) {
  if (engine_->has_failed()) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || departed_[peer]) continue;
    control_->send(peer, FrameType::kFault, kFaultKind,
                   std::vector<std::uint8_t>(why.begin(), why.end()));
  }
}

std::string Communicator::name_of(int peer) const { return names_[peer]; }

}  // namespace riffle::coll
