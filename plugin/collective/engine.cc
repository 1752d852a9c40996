#include "plugin/collective/engine.h"

#include <algorithm>
#include <utility>

#include "topology/base/check.h"

namespace riffle {

int member_at(const GroupRun& run, std::uint64_t element) {
  const auto after = std::upper_bound(run.cuts.begin(), run.cuts.end(), element);
  return static_cast<int>(after - run.cuts.begin()) - 1;
}

Engine::Engine(Mesh* mesh, const EngineOptions& options, Violation violation)
    : mesh_(mesh), options_(options), violation_(std::move(violation)) {
  RIFFLE_CHECK(options_.piece_bytes <= kMaxFramePayload, "a piece must fit a frame");
  options_.piece_bytes = std::min(options_.piece_bytes, options_.chunk_bytes);
  operations_.resize(options_.max_operations);
}

Engine::~Engine() = default;

void Engine::submit(Operation* operation) {
  operation->next_element = 0;
  operation->running_chunks = 0;
  if (failed_) {
    operation->state.store(Operation::State::kFailed, std::memory_order_release);
    return;
  }
  RIFFLE_CHECK(queued_ < operations_.size(), "more operations than agreed");
  operations_[(first_operation_ + queued_) % operations_.size()] = operation;
  ++queued_;
  if (options_.counters != nullptr) {
    operation->began_ns = mesh_->now_ns();
    options_.counters->began(operation->began_ns);
  }
  start_chunks();
}

void Engine::start_chunks() {
  if (starting_) return;  // called from a frame that was fed to a starting chunk
  starting_ = true;
  while (queued_ > 0 && !failed_) {
    Chunk& chunk = chunks_[next_seq_ % chunks_.size()];
    if (chunk.active) break;
    Operation* operation = operations_[first_operation_];
    start(chunk, operation);
    if (!failed_ && operation->next_element == operation->count) {
      first_operation_ = (first_operation_ + 1) % operations_.size();
      --queued_;
    }
    finish_if_done(chunk);
  }
  starting_ = false;
}

void Engine::start(Chunk& chunk, Operation* operation) {
  contributor_ = mesh_->rank();
  chunk.active = true;
  chunk.seq = next_seq_++;
  chunk.operation = operation;
  chunk.program = &program_of(operation->collective, chunk.seq);
  chunk.element_bytes = size_of(operation->type);
  chunk.cell = options_.piece_bytes / chunk.element_bytes;
  chunk.count = std::min<std::uint64_t>(operation->count - operation->next_element,
                                        options_.chunk_bytes / chunk.element_bytes);
  const std::uint64_t at = operation->next_element * chunk.element_bytes;
  chunk.send = operation->send + at;
  chunk.recv = operation->recv + at;
  chunk.sends = 0;
  ++running_;
  ++operation->running_chunks;

  cut(chunk);
  operation->next_element += chunk.count;
  announce(chunk);
  const Shard whole = chunk.whole();
  for (int i = 0; i < whole.fragments(); ++i) {
    for (const int child : chunk.program->root_children) {
      const GroupRun& run = chunk.runs[child];
      const Range part = intersect(whole.fragment(i), {run.cuts.front(), run.cuts.back()});
      if (part.is_empty()) continue;
      executor(chunk.program->groups[child].group.pattern).own_ready(*this, chunk, child, part);
    }
  }
  feed_early(chunk);
}

// Turns shares into elements for this chunk and clears the state of its groups.
void Engine::cut(Chunk& chunk) {
  const Operation& o = *chunk.operation;
  const std::uint64_t grain = kGrainBytes / chunk.element_bytes;
  for (std::size_t g = 0; g < chunk.program->groups.size(); ++g) {
    const LocalGroup& local = chunk.program->groups[g];
    GroupRun& run = chunk.runs[g];
    run.cuts.resize(local.group.cuts.size());
    for (std::size_t i = 0; i < run.cuts.size(); ++i) {
      if (o.collective == Collective::kAllReduce) {
        run.cuts[i] = element_of(local.group.cuts[i], chunk.count, grain);
      } else {  // block i begins at i * block in the whole vector
        const std::uint64_t begin = i * o.block;
        const std::uint64_t window = o.window + o.next_element;
        run.cuts[i] = std::min(begin > window ? begin - window : 0, chunk.count);
      }
    }
    run.not_final.assign(chunk.own_shard(static_cast<int>(g)).fragments(), 0);
    executor(local.group.pattern).start(chunk, static_cast<int>(g));
  }
  // A reduce-scatter is over when the own block is; other blocks are not waited for.
  chunk.not_final = chunk.gathers() ? chunk.count : chunk.own_shard(0).range.size();
}

void Engine::announce(Chunk& chunk) {
  for (std::size_t g = 0; g < chunk.program->groups.size(); ++g) {
    const LocalGroup& local = chunk.program->groups[g];
    executor(local.group.pattern).count_partials(chunk, static_cast<int>(g), frames_to_.data());
    for (int m = 0; m < local.size(); ++m) {
      const int frames = std::exchange(frames_to_[m], 0);
      if (frames > 0) {
        flows_[flow_index(local.group.members[m], local.level)]->announce(chunk.seq, frames);
      }
    }
  }
}

void Engine::feed_early(Chunk& chunk) {
  // A peer that owns nothing of a reduce-scatter may be a whole round of chunk numbers ahead, so
  // the list can hold frames of several chunks.
  auto& early = early_[chunk.index];
  for (std::size_t i = 0; i < early.size();) {
    if (early[i].header.seq != chunk.seq) {
      ++i;
      continue;
    }
    const Early e = early[i];
    early[i] = early.back();
    early.pop_back();
    arrived(e.peer, e.header, e.slot);
  }
}

void Engine::finish_if_done(Chunk& chunk) {
  if (!chunk.active || chunk.not_final > 0 || chunk.sends > 0) return;
  chunk.active = false;
  --running_;
  Operation* operation = chunk.operation;
  if (--operation->running_chunks == 0 && operation->next_element == operation->count) {
    if (options_.counters != nullptr) count(*operation);
    operation->state.store(Operation::State::kDone, std::memory_order_release);
  }
}

void Engine::count(const Operation& operation) const {
  const std::uint64_t now_ns = mesh_->now_ns();
  if (operation.collective == Collective::kAllReduce) {
    options_.counters->ended(now_ns, operation.began_ns, operation.count * size_of(operation.type));
  } else {
    options_.counters->ended_other(now_ns);
  }
}

void Engine::fail() {
  if (failed_) return;
  failed_ = true;
  if (options_.counters != nullptr) options_.counters->all_failed(mesh_->now_ns());
  for (Chunk& chunk : chunks_) {
    if (!chunk.active) continue;
    chunk.active = false;
    chunk.operation->state.store(Operation::State::kFailed, std::memory_order_release);
  }
  for (; queued_ > 0; --queued_) {
    operations_[first_operation_]->state.store(Operation::State::kFailed,
                                               std::memory_order_release);
    first_operation_ = (first_operation_ + 1) % operations_.size();
  }
  for (auto& flow : flows_) {
    if (flow) flow->clear();
  }
  for (auto& early : early_) early.clear();
  running_ = 0;
}

}  // namespace riffle
