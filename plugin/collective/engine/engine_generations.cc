// Engine: from one plan to the next, and what they say of the next chunk.
#include <algorithm>
#include <string>
#include <utility>

#include "plugin/collective/engine/engine.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

constexpr std::size_t kExpectedEarly = 4;  // partial sums before their chunk, without allocating

}  // namespace

Status Engine::install(const PlanSet& plans) {
  RIFFLE_CHECK(generations_.empty(), "a plan is installed already");
  // First: frames may come from here on, and what fails below must not leave them without it.
  Result<std::unique_ptr<SlotMemory>> discard = SlotMemory::map(kMaxFramePayload);
  if (!discard) return discard.status();
  discard_ = std::move(*discard);
  Result<std::unique_ptr<Generation>> first =
      Generation::make(plans, 0, mesh_->rank(), mesh_->size(), options_);
  if (!first) return first.status();
  (*first)->first_seq = 0;
  generations_.reserve(kMaxGenerations);
  generations_.push_back(std::move(*first));
  make_room_to_wait();
  mesh_->set_peer_weights(generations_.back()->weights());
  chunks_.resize(options_.max_chunks);
  early_.resize(options_.max_chunks);
  for (int i = 0; i < options_.max_chunks; ++i) {
    chunks_[i].index = i;
    early_[i].reserve(kExpectedEarly);
  }
  frames_to_.assign(mesh_->size(), 0);
  if (options_.trace.log != nullptr) {
    trace_ =
        std::make_unique<CallTrace>(mesh_, options_.trace, options_.nodes, options_.max_chunks);
  }
  return Status::ok();
}

Status Engine::prepare(std::unique_ptr<Generation> generation) {
  RIFFLE_CHECK(!generations_.empty(), "no plan is installed");
  if (has_prepared_) return internal_error("a plan is prepared already");
  if (generations_.size() == kMaxGenerations) {
    return internal_error("the plan before the current one has not ended yet");
  }
  if (generation->number() != next_generation()) {
    return internal_error("plan number " + std::to_string(generation->number()) + ", expected " +
                          std::to_string(next_generation()));
  }
  generations_.push_back(std::move(generation));
  make_room_to_wait();
  has_prepared_ = true;
  return Status::ok();
}

// A window that one generation brings holds back the frames of the others, too.
void Engine::make_room_to_wait() {
  std::size_t most = 0;
  bool has_window = false;
  for (const auto& generation : generations_) {
    most = std::max(most, generation->most_waiting());
    has_window = has_window || generation->send_bytes() != SendWindow::kNoLimit;
  }
  if (has_window) send_window_.reserve(most);
}

void Engine::hold_at(std::uint64_t seq) {
  RIFFLE_CHECK(seq >= next_seq_, "a chunk behind the hold has begun");
  hold_ = seq;
  hold_is_counted_ = false;
}

void Engine::switch_at(std::uint64_t seq) {
  RIFFLE_CHECK(has_prepared_, "no plan is prepared");
  RIFFLE_CHECK(seq >= earliest_switch(), "a chunk of the next plan has begun");
  generations_.back()->first_seq = seq;
  mesh_->set_peer_weights(generations_.back()->weights());
  has_prepared_ = false;
  hold_ = Generation::kNotAgreed;
  start_chunks();
}

std::uint64_t Engine::earliest_switch() const {
  std::uint64_t seq = next_seq_;
  for (const auto& generation : generations_) {
    if (generation->first_seq != Generation::kNotAgreed) seq = std::max(seq, generation->first_seq);
  }
  return seq;
}

void Engine::drop_prepared() {
  if (!has_prepared_) return;
  has_prepared_ = false;
  hold_ = Generation::kNotAgreed;
  // A peer that breaks the protocol may have a frame on its way into it: then its memory stays.
  if (generations_.back()->slots_taken > 0) dropped_.push_back(std::move(generations_.back()));
  generations_.pop_back();
  start_chunks();
}

Generation& Engine::generation_of(std::uint64_t seq) const {
  std::size_t i = generations_.size();
  while (generations_[--i]->first_seq > seq) {
  }
  return *generations_[i];
}

std::uint64_t Engine::next_elements(const Operation& operation) const {
  const bool is_planned =
      operation.collective == Collective::kAllReduce && operation.step == Operation::kExact;
  const std::size_t bytes =
      is_planned ? generation_of(next_seq_).chunk_bytes() : options_.chunk_bytes;
  std::uint64_t most = bytes / size_of(operation.type);
  if (options_.has_window(operation)) {
    const std::uint64_t chunks = generation_of(next_seq_).windowed_chunks();
    most = std::min(most, (operation.count + chunks - 1) / chunks);
  }
  return std::min(operation.count - operation.next_element, most);
}

// Its next chunk. Asked before what may be done but once.
bool Engine::has_room_for(const Operation& operation) const {
  if (!options_.has_window(operation)) return true;
  const Generation& g = generation_of(next_seq_);
  return chunk_window_.has_room(next_elements(operation) * size_of(operation.type), g.busy_bytes(),
                                options_.threads);
}

// Frees what no chunk will run in again.
void Engine::retire() {
  while (generations_.size() > 1 && generations_[1]->first_seq <= next_seq_ &&
         generations_[0]->running == 0 && generations_[0]->slots_taken == 0) {
    generations_.erase(generations_.begin());
  }
}

}  // namespace riffle
