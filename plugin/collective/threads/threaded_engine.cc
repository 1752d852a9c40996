#include "plugin/collective/threads/threaded_engine.h"

#include <algorithm>
#include <utility>

#include "plugin/transport/base/mesh.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

EngineOptions options_of(EngineOptions options, int thread, int threads) {
  options.thread = thread;
  options.threads = threads;
  options.send_bytes /= static_cast<std::size_t>(threads);
  if (thread == 0) return options;
  options.counters = nullptr;
  options.trace = {};
  // What it only counts may gather while a large one waits for the network.
  constexpr int kMoreOperations = 4;
  options.max_operations *= kMoreOperations;
  return options;
}

}  // namespace

ThreadedEngine::ThreadedEngine(Mesh* mesh, const std::vector<MeshPart*>& parts,
                               const EngineOptions& options, Engine::Violation violation)
    : mesh_(mesh),
      violation_(std::move(violation)),
      engine_(mesh, options_of(options, 0, 1 + static_cast<int>(parts.size())), violation_) {
  if (parts.empty()) return;
  const int threads = 1 + static_cast<int>(parts.size());
  const auto most = static_cast<std::size_t>(options.max_operations);
  shared_ = std::vector<Shared>(most + parts.size());
  waiting_.reserve(most);
  for (MeshPart* const part : parts) {
    const int thread = 1 + static_cast<int>(workers_.size());
    workers_.push_back(std::make_unique<EngineWorker>(part, options_of(options, thread, threads),
                                                      [this] { told(); }));
  }
}

// ---- plans ----

Status ThreadedEngine::install(const PlanSet& plans) {
  Status status = engine_.install(plans);
  for (const auto& worker : workers_) {
    if (status) worker->with_engine([&](Engine& e) { status = e.install(plans); });
  }
  return status;
}

Result<ThreadedEngine::Generations> ThreadedEngine::make(const PlanSet& plans, std::uint64_t number,
                                                         int rank, int size,
                                                         const EngineOptions& options) {
  Generations all;
  for (int thread = 0; thread < options.threads; ++thread) {
    auto one = Generation::make(plans, number, rank, size, options);
    if (!one) return one.status();
    all.push_back(std::move(*one));
  }
  return all;
}

Status ThreadedEngine::prepare(Generations generations) {
  RIFFLE_CHECK(generations.size() == 1 + workers_.size(), "a generation per engine");
  Status status = engine_.prepare(std::move(generations[0]));
  if (!status) return status;
  for (std::size_t i = 0; i < workers_.size() && status; ++i) {
    workers_[i]->with_engine([&](Engine& e) { status = e.prepare(std::move(generations[1 + i])); });
  }
  if (!status) drop_prepared();
  return status;
}

void ThreadedEngine::switch_at(std::uint64_t seq) {
  for (const auto& worker : workers_) {
    worker->with_engine([seq](Engine& e) { e.switch_at(seq); });
  }
  engine_.switch_at(seq);
}

void ThreadedEngine::drop_prepared() {
  for (const auto& worker : workers_) {
    worker->with_engine([](Engine& e) { e.drop_prepared(); });
  }
  engine_.drop_prepared();
}

// The others stop where they are until the chunk is known that none of them has begun.
std::uint64_t ThreadedEngine::hold_after(std::uint64_t chunks) {
  std::uint64_t seq = engine_.earliest_switch();
  for (const auto& worker : workers_) {
    worker->with_engine([&](Engine& e) {
      e.hold_at(e.next_seq());
      seq = std::max(seq, e.earliest_switch());
    });
  }
  seq += chunks;
  for (const auto& worker : workers_) {
    worker->with_engine([seq](Engine& e) {
      e.hold_at(seq);
      e.go_on();
    });
  }
  engine_.hold_at(seq);
  return seq;
}

std::size_t ThreadedEngine::generations() const {
  std::size_t most = engine_.generations();
  for (const auto& worker : workers_) most = std::max(most, worker->generations());
  return most;
}

// ---- operations ----

void ThreadedEngine::submit(Operation* operation) {
  if (workers_.empty()) return engine_.submit(operation);
  if (has_failed()) return operation->end(Operation::State::kFailed);
  account();
  if (waiting_.empty() && post(operation)) return;
  waiting_.push_back(operation);
}

// To all engines, or to none.
bool ThreadedEngine::post(Operation* operation) {
  if (std::any_of(workers_.begin(), workers_.end(),
                  [](const auto& worker) { return !worker->has_room(); })) {
    return false;
  }
  if (!options().shares(*operation)) {
    for (const auto& worker : workers_) worker->post(*operation, nullptr);
    engine_.submit(operation);
    return true;
  }
  const auto free = std::find_if(shared_.begin(), shared_.end(), [](const Shared& s) {
    return !s.is_running && s.outcome.is_free();
  });
  RIFFLE_CHECK(free != shared_.end(), "more operations than agreed");
  free->is_running = true;
  free->is_sum = operation->collective == Collective::kAllReduce;
  free->bytes = operation->bytes();
  free->began_ns = mesh_->now_ns();
  ++running_;
  if (free->is_sum) busy_.began(free->began_ns, mesh_->others_on_nics().sum());
  if (options().counters != nullptr) options().counters->began(free->began_ns);
  free->outcome.begin(operation, 1 + static_cast<int>(workers_.size()), mesh_);
  for (const auto& worker : workers_) worker->post(*operation, &free->outcome);
  free->part.copy_call(*operation);
  free->part.shared = &free->outcome;
  free->part.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  engine_.submit(&free->part);
  return true;
}

// Of large operations that have ended meanwhile.
void ThreadedEngine::account() {
  for (Shared& s : shared_) {
    if (running_ == 0) return;
    if (!s.is_running || !s.outcome.is_free()) continue;
    s.is_running = false;
    --running_;
    if (has_failed()) continue;
    const std::uint64_t ended_ns = s.outcome.ended_ns();
    if (s.is_sum) busy_.ended(ended_ns, mesh_->others_on_nics().sum(), s.bytes);
    if (options().counters == nullptr) continue;
    if (s.is_sum) {
      options().counters->ended(ended_ns, s.began_ns, s.bytes);
    } else {
      options().counters->ended_other(ended_ns);
    }
  }
}

Busy ThreadedEngine::busy() const {
  Busy sum = engine_.busy();
  const Busy& large = busy_.done();
  sum.bytes += large.bytes;
  sum.busy_ns += large.busy_ns;
  sum.bursts += large.bursts;
  sum.others += large.others;
  return sum;
}

void ThreadedEngine::told() {
  for (const auto& worker : workers_) {
    for (const auto& [peer, why] : worker->take_lost()) violation_(peer, why);
  }
  account();
  while (!waiting_.empty() && !has_failed() && post(waiting_.front())) {
    waiting_.erase(waiting_.begin());
  }
}

void ThreadedEngine::fail() {
  engine_.fail();
  for (const auto& worker : workers_) {
    worker->with_engine([](Engine& e) { e.fail(); });
  }
  for (Operation* const operation : waiting_) operation->end(Operation::State::kFailed);
  waiting_.clear();
  account();
  busy_.all_failed();
}

bool ThreadedEngine::is_idle() const {
  return engine_.is_idle() && waiting_.empty() &&
         std::none_of(shared_.begin(), shared_.end(),
                      [](const Shared& s) { return !s.outcome.is_free(); });
}

std::vector<int> ThreadedEngine::waits_for() const {
  std::vector<int> nodes;
  if (!engine_.is_idle()) nodes = engine_.waits_for();
  for (const auto& worker : workers_) {
    if (!nodes.empty()) break;
    worker->with_engine([&](Engine& e) {
      if (!e.is_idle()) nodes = e.waits_for();
    });
  }
  return nodes;
}

bool ThreadedEngine::take_moved() const {
  bool has_moved = false;
  for (const auto& worker : workers_) has_moved = worker->take_moved() || has_moved;
  return has_moved;
}

}  // namespace riffle
