#include "plugin/collective/engine/engine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "plugin/transport/base/mesh.h"
#include "topology/base/check.h"
#include "topology/base/scope_flag.h"

namespace riffle {

namespace {

// That this engine runs alone: else all engines' owner accounts for it.
bool is_exact_sum(const Operation& o) {
  return o.collective == Collective::kAllReduce && o.step == Operation::kExact &&
         o.shared == nullptr;
}

}  // namespace

Engine::Engine(Mesh* mesh, const EngineOptions& options, Violation violation)
    : mesh_(mesh),
      options_(options),
      violation_(std::move(violation)),
      send_window_(mesh),
      lengths_(mesh) {
  RIFFLE_CHECK(options_.piece_bytes <= kMaxFramePayload, "a fragment must fit a frame");
  options_.piece_bytes = std::min(options_.piece_bytes, options_.chunk_bytes);
  operations_.resize(options_.max_operations);
}

Engine::~Engine() = default;

// ------------------------------------------------------------------------------------- chunks

void Engine::submit(Operation* operation) {
  operation->next_element = 0;
  operation->running_chunks = 0;
  if (failed_) return operation->end(Operation::State::kFailed);
  RIFFLE_CHECK(queued_ < operations_.size(), "more operations than agreed");
  RIFFLE_CHECK(options_.has_blocks || operation->collective == Collective::kAllReduce,
               "this engine was set up for all-reduces only");
  RIFFLE_CHECK(operation->step == Operation::kExact ||
                   (operation->collective == Collective::kAllReduce &&
                    operation->count * size_of(operation->type) <= options_.chunk_bytes),
               "a relaxed operation is an all-reduce of one chunk");
  operations_[(first_operation_ + queued_) % operations_.size()] = operation;
  ++queued_;
  if (is_exact_sum(*operation)) busy_.began(mesh_->now_ns(), mesh_->others_on_nics().sum());
  if (options_.counters != nullptr && operation->shared == nullptr) {
    operation->began_ns = mesh_->now_ns();
    options_.counters->began(operation->began_ns);
  }
  if (trace_) trace_->posted(*operation);
  start_chunks();
}

void Engine::start_chunks() {
  if (starting_) return;  // called from a frame that was fed to a starting chunk
  const ScopeFlag starting(starting_);
  while (queued_ > 0 && !failed_) {
    Operation* operation = operations_[first_operation_];
    const bool is_own = runs_here(*operation);
    Chunk& chunk = chunks_[next_seq_ % chunks_.size()];
    if (is_own && (chunk.active || !has_room_for(*operation))) break;
    if (next_seq_ >= hold_) {
      holds_reached_ += !std::exchange(hold_is_counted_, true);
      break;
    }
    if (is_own && !finds_length(operation)) break;
    const std::uint64_t elements = next_elements(*operation);
    const bool is_last = operation->next_element + elements == operation->count;
    if (is_own) {
      start(chunk, operation);  // which may end it, if it is the last
    } else {
      operation->next_element += elements;
      ++next_seq_;
    }
    if (!failed_ && is_last) {
      first_operation_ = (first_operation_ + 1) % operations_.size();
      --queued_;
    }
    if (is_own) {
      finish_if_done(chunk);
    } else {
      end_if_over(operation);
    }
  }
  if (!failed_) retire();
}

// Of the next chunk.
bool Engine::runs_here(const Operation& operation) const {
  if (options_.threads == 1) return true;
  if (!options_.shares(operation)) return options_.thread == 0;
  return next_seq_ % static_cast<std::uint64_t>(options_.threads) ==
         static_cast<std::uint64_t>(options_.thread);
}

// What several engines share runs in full: whether a node knows how long it is would have to be
// agreed on by each of them.
bool Engine::finds_length(Operation* operation) {
  if (!options_.shares(*operation)) return lengths_.find(operation, next_seq_);
  operation->length = operation->count;
  return true;
}

void Engine::start(Chunk& chunk, Operation* operation) {
  const std::uint64_t posted = next_elements(*operation);
  contributor_ = mesh_->rank();
  chunk.active = true;
  chunk.seq = next_seq_++;
  chunk.operation = operation;
  chunk.is_traced = trace_ && operation->is_traced;
  if (chunk.is_traced) trace_->chunk_began(chunk);
  chunk.generation = &generation_of(chunk.seq);
  ++chunk.generation->running;
  choose_program(chunk, *operation);
  chunk.runs = chunk.generation->runs(chunk.index);
  chunk.element_bytes = size_of(operation->type);
  chunk.fragment_elements = options_.piece_bytes / chunk.element_bytes;
  const std::uint64_t first = operation->next_element;
  // Chunks without a valid element keep their number, and so all others their lanes.
  chunk.count = std::min(operation->length - std::min(operation->length, first), posted);
  const std::uint64_t at = first * chunk.element_bytes;
  chunk.send = operation->send + at;
  chunk.recv = operation->recv + at;
  chunk.sends = 0;
  ++running_;
  ++operation->running_chunks;
  chunk.place_bytes = options_.has_window(*operation) ? chunk.count * chunk.element_bytes : 0;
  chunk_window_.began(chunk.place_bytes);

  cut(chunk, posted);
  operation->next_element += posted;
  announce(chunk);
  const Shard whole = chunk.whole();
  for (int i = 0; i < whole.fragments(); ++i) {
    for (const int child : chunk.program->root_children) {
      const GroupRun& run = chunk.runs[child];
      const Range part = intersect(whole.fragment(i), {run.cuts.front(), run.cuts.back()});
      if (part.is_empty()) continue;
      group_executor::own_ready(*this, chunk, child, part);
    }
  }
  if (chunk.program->groups.empty()) keep(chunk);
  feed_early(chunk);
}

void Engine::choose_program(Chunk& chunk, const Operation& operation) {
  const Generation& g = *chunk.generation;
  const bool is_relaxed = operation.step != Operation::kExact && g.relaxed_steps() > 0;
  if (is_relaxed) {
    const std::uint64_t step = static_cast<std::uint64_t>(operation.step) % g.relaxed_steps();
    chunk.lanes = nullptr;
    chunk.program = &g.relaxed_program(step, operation.lane);
    chunk.step_class = static_cast<std::uint16_t>(1 + step);
  } else {
    // As posted, which all nodes know alike, as they may not know how much of it is valid.
    chunk.lanes = &g.lanes_for(operation.count * size_of(operation.type));
    chunk.program = operation.collective == Collective::kAllReduce
                        ? &chunk.lanes->programs[chunk.seq % chunk.lanes->programs.size()]
                        : &g.blocks();
    chunk.step_class = 0;
  }
  send_window_.set_bytes(operation.collective == Collective::kAllReduce && !is_relaxed
                             ? g.send_bytes()
                             : SendWindow::kNoLimit);
}

// This node is in no group: its contribution is the sum.
void Engine::keep(Chunk& chunk) {
  if (!chunk.operation->is_dry && chunk.recv != chunk.send && chunk.count > 0) {
    std::memcpy(chunk.recv, chunk.send, chunk.count * chunk.element_bytes);
  }
  chunk.not_final = 0;
}

// Turns shares into elements for this chunk, of which NCCL posted `posted`, and clears the state of
// its groups. The valid ones are shared out evenly; but where a ring is, who owns an element is
// also where its sum begins, and that must not depend on what happens to be known of the length.
void Engine::cut(Chunk& chunk, std::uint64_t posted) {
  const Operation& o = *chunk.operation;
  const Lanes* lanes = chunk.lanes;  // of a relaxed chunk none
  const std::size_t grain_bytes =
      lanes != nullptr ? lanes->grain_bytes(chunk.count * chunk.element_bytes) : kGrainBytes;
  // A power of two; of blocks, which are no whole number of lines, what is nearest.
  const std::uint64_t grain =
      std::bit_floor(std::max<std::uint64_t>(1, grain_bytes / chunk.element_bytes));
  const std::uint64_t shared =
      lanes != nullptr && lanes->sums_depend_on_owner ? posted : chunk.count;
  for (std::size_t g = 0; g < chunk.program->groups.size(); ++g) {
    const LocalGroup& local = chunk.program->groups[g];
    GroupRun& run = chunk.runs[g];
    run.cuts.resize(local.group.cuts.size());
    for (std::size_t i = 0; i < run.cuts.size(); ++i) {
      if (o.collective == Collective::kAllReduce) {
        run.cuts[i] = std::min(element_of(local.group.cuts[i], shared, grain), chunk.count);
      } else {  // block i begins at i * block in the whole vector
        const std::uint64_t begin = i * o.block;
        const std::uint64_t window = o.window + o.next_element;
        run.cuts[i] = std::min(begin > window ? begin - window : 0, chunk.count);
      }
    }
    run.not_final.assign(chunk.own_shard(static_cast<int>(g)).fragments(), 0);
    group_executor::start(chunk, static_cast<int>(g));
  }
  // A reduce-scatter is over when the own block is; other blocks are not waited for.
  chunk.not_final = chunk.gathers() ? chunk.count : chunk.own_shard(0).range.size();
}

void Engine::announce(Chunk& chunk) {
  for (std::size_t g = 0; g < chunk.program->groups.size(); ++g) {
    const LocalGroup& local = chunk.program->groups[g];
    group_executor::count_partials(chunk, static_cast<int>(g), frames_to_.data());
    for (int m = 0; m < local.size(); ++m) {
      const int frames = std::exchange(frames_to_[m], 0);
      if (frames > 0) {
        chunk.generation->flow(local.group.members[m], local.level)->announce(chunk.seq, frames);
      }
    }
  }
}

void Engine::feed_early(Chunk& chunk) {
  // A peer that owns nothing of a reduce-scatter may be a whole round of chunk numbers ahead, so
  // the list can hold frames of several chunks.
  auto& early = early_[chunk.index];
  for (std::size_t i = 0; i < early.size();) {
    if (early[i].frame.chunk != chunk.seq) {
      ++i;
      continue;
    }
    const Sum sum = early[i];
    early[i] = early.back();
    early.pop_back();
    take(sum);
  }
}

void Engine::finish_if_done(Chunk& chunk) {
  if (!chunk.active || chunk.not_final > 0 || chunk.sends > 0) return;
  chunk.active = false;
  if (chunk.is_traced) trace_->chunk_over(chunk);
  --running_;
  --chunk.generation->running;
  --chunk.operation->running_chunks;
  chunk_window_.ended(chunk.place_bytes);
  end_if_over(chunk.operation);
}

void Engine::end_if_over(Operation* operation) {
  if (operation->running_chunks > 0 || operation->next_element < operation->count) return;
  if (options_.counters != nullptr && operation->shared == nullptr) count(*operation);
  if (trace_ && operation->is_traced) trace_->over(*operation);
  if (is_exact_sum(*operation)) {
    busy_.ended(mesh_->now_ns(), mesh_->others_on_nics().sum(),
                operation->length * size_of(operation->type));
  }
  operation->end(Operation::State::kDone);
}

void Engine::count(const Operation& operation) const {
  const std::uint64_t now_ns = mesh_->now_ns();
  if (operation.collective == Collective::kAllReduce) {
    options_.counters->ended(now_ns, operation.began_ns,
                             operation.length * size_of(operation.type));
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
    chunk.operation->end(Operation::State::kFailed);
  }
  for (; queued_ > 0; --queued_) {
    operations_[first_operation_]->end(Operation::State::kFailed);
    first_operation_ = (first_operation_ + 1) % operations_.size();
  }
  for (const auto& generation : generations_) generation->clear_flows();
  for (auto& early : early_) early.clear();
  send_window_.clear();
  lengths_.clear();
  running_ = 0;
  busy_.all_failed();
}

// ------------------------------------------------------------------------- the walk between levels

void Engine::reduced(Chunk& chunk, int group, Range range) {
  if (options_.counters != nullptr) {
    const auto at = static_cast<std::size_t>(contributor_);
    options_.counters->last_was(options_.nodes.empty() ? contributor_ : options_.nodes[at]);
  }
  const int fragment = chunk.own_shard(group).fragment_at(range.begin);
  chunk.runs[group].not_final[fragment] = range.size();
  std::uint64_t passed_on = 0;
  for (const int child : chunk.program->groups[group].children) {
    const GroupRun& run = chunk.runs[child];
    const Range part = intersect(range, {run.cuts.front(), run.cuts.back()});
    if (part.is_empty()) continue;
    passed_on += part.size();
    group_executor::own_ready(*this, chunk, child, part);
  }
  // What no later level takes is final here.
  own_elements_final(chunk, group, fragment, range.size() - passed_on);
}

void Engine::completed(Chunk& chunk, int group, Range range) {
  const int parent = chunk.program->groups[group].parent;
  if (parent == kRoot) {
    RIFFLE_CHECK(range.size() <= chunk.not_final, "more final sums than elements");
    chunk.not_final -= range.size();
    return;
  }
  own_elements_final(chunk, parent, chunk.own_shard(parent).fragment_at(range.begin), range.size());
}

void Engine::own_elements_final(Chunk& chunk, int group, int fragment, std::uint64_t elements) {
  std::uint64_t& left = chunk.runs[group].not_final[fragment];
  RIFFLE_CHECK(elements <= left, "more final sums than elements");
  left -= elements;
  if (elements == 0 || left > 0) return;
  const Range range = chunk.own_shard(group).fragment(fragment);
  if (chunk.gathers()) {
    group_executor::gather(*this, chunk, group, range);
  }
  completed(chunk, group, range);
}

}  // namespace riffle
