// The life of a segment: submitted, started, one round or two, done. Its frames: sparse_frames.cc.
#include "plugin/collective/sparse/sparse_runner.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plugin/collective/sparse/sparse_timer.h"
#include "plugin/kernels/float_environment.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/check.h"
#include "topology/base/scope_flag.h"

namespace riffle {
namespace {

// 2 ceil(log2 T) + ceil(log2 d) with T d = P is at most this.
std::size_t most_steps(int nodes) {
  return 2 * static_cast<std::size_t>(sparse::ceil_log2(nodes)) + 2;
}

// Whatever the teams: at most P/2 versions of the whole segment, dense.
std::uint64_t most_bytes(int nodes, std::uint64_t elements) {
  const auto n = static_cast<std::uint64_t>(nodes);
  return sparse::kMessageHeaderBytes + n * sparse::kBlockHeaderBytes +
         std::max<std::uint64_t>(1, n / 2) * 4 * (elements + n);
}

}  // namespace

void SparseRunner::Heard::add(const Heard& other) {
  is_in_doubt = is_in_doubt || other.is_in_doubt;
  least_digest = std::min(least_digest, other.least_digest);
  largest_digest = std::max(largest_digest, other.largest_digest);
}

SparseRunner::SparseRunner(Mesh* mesh, const Options& options, Violation violation)
    : mesh_(mesh),
      options_(options),
      violation_(std::move(violation)),
      most_steps_(most_steps(mesh->size())),
      most_bytes_(most_bytes(mesh->size(), options.most_elements)),
      slots_(kSlots) {
  for (int i = 0; i < mesh->size(); ++i) all_.node_at.push_back(i);
  all_.own = mesh->rank();
  for (Slot& slot : slots_) {
    slot.inboxes.resize(std::size_t{kRounds} * most_steps_);
    slot.outboxes.resize(slot.inboxes.size());
  }
}

SparseRunner::~SparseRunner() = default;

std::uint64_t SparseRunner::now() const { return mesh_->now_ns(); }

void SparseRunner::submit(SparseSegment* segment, Operation* operation) {
  if (failed_) {
    operation->state.store(Operation::State::kFailed, std::memory_order_release);
    return;
  }
  RIFFLE_CHECK(segment->whole <= options_.most_elements, "a segment longer than agreed");
  queue_.push_back({segment, operation});
  ++submitted_;
  if (options_.counters != nullptr) {
    operation->began_ns = now();
    options_.counters->began(operation->began_ns);
  }
  start_segments();
}

void SparseRunner::start_segments() {
  if (is_starting_) return;  // called by a segment that was over at once: this node is alone
  const ScopeFlag starting(is_starting_);
  const DefaultFloatEnvironment environment;
  while (!queue_.empty() && started_ < oldest_ + kWindow && !failed_) {
    Slot& slot = slot_of(started_);
    if (slot.phase == Phase::kFree) open(slot, started_);
    slot.segment = queue_.front().segment;
    slot.operation = queue_.front().operation;
    queue_.pop_front();
    if (started_ == oldest_) active_since_ns_ = now();
    ++started_;
    start(slot);
  }
}

void SparseRunner::open(Slot& slot, std::uint64_t seq) {
  slot.seq = seq;
  slot.phase = Phase::kWaiting;
}

void SparseRunner::start(Slot& slot) {
  SparseSegment& s = *slot.segment;
  slot.phase = Phase::kRunning;
  slot.round = slot.step = 0;
  slot.heard = {!s.is_certain, s.digest, s.digest};
  const bool is_of_all = s.places->node_at.size() == all_.node_at.size();
  slot.places = is_of_all ? s.places : &all_;
  slot.is_dense = s.is_dense || !is_of_all;
  {
    const SparseTimer timer(mesh_, options_.work ? &options_.work->select_ns : nullptr);
    if (slot.is_dense) {
      slot.takes_residual =
          s.is_certain && s.pool->options.residual != sparse::ResidualPolicy::kEf21;
      begin_dense(slot, slot.takes_residual);
    } else {
      RIFFLE_CHECK(!s.pool->free.empty(), "more segments under way than exchanges");
      slot.first = std::move(s.pool->free.back());
      s.pool->free.pop_back();
      if (slot.first->layout().shape().density != s.density) slot.first->set_density(s.density);
      if (s.state_density != s.density) {
        s.state.move_to(slot.first->layout(), s.places->own);
        s.state_density = s.density;
      }
      slot.first->begin(s.state, s.send, s.element, static_cast<std::uint32_t>(slot.seq));
    }
  }
  go_on(slot);
  advance(slot);
}

// What goes into the dense round: what is stale or not finite counts as zero there.
std::vector<float> SparseRunner::dense_input(const Slot& slot, bool takes_residual) const {
  const SparseSegment& s = *slot.segment;
  std::vector<float> input(s.whole);
  for (std::uint64_t i = 0; i < s.whole; ++i) {
    float u = sparse::load(s.send, s.element, i);
    if (takes_residual && i < s.elements) u += s.state.residual[i];
    const bool is_wanted = sparse::is_finite(u) || (slot.round == 0 && i < s.elements);
    input[i] = is_wanted ? u : 0.0F;
  }
  return input;
}

// An exchange in which every node sends everything.
void SparseRunner::begin_dense(Slot& slot, bool takes_residual) {
  const SparseSegment& s = *slot.segment;
  const int teams = slot.places == &all_ ? 1 : s.teams;
  const sparse::Layout layout({mesh_->size(), teams, s.whole, 1.0});
  sparse::ExchangeOptions options;
  options.across = s.pool->options.across;
  options.isa = s.pool->options.isa;
  slot.second = std::make_unique<sparse::Exchange>(layout, options, slot.places->own);
  slot.scratch = sparse::ChunkState(layout, slot.places->own, options.residual);
  const std::vector<float> input = dense_input(slot, takes_residual);
  slot.second->begin(slot.scratch, input.data(), sparse::Element::kFloat32,
                     static_cast<std::uint32_t>(slot.seq));
}

// With the next step, if there is one.
void SparseRunner::go_on(Slot& slot) {
  if (slot.exchange().is_done()) {
    end_round(slot);
  } else {
    send_step(slot);
  }
}

// Takes what has come for the step at hand, and the next ones.
void SparseRunner::advance(Slot& slot) {
  while (slot.phase == Phase::kRunning && !failed_) {
    Inbox& inbox = slot.inboxes[index_of(slot.round, slot.step)];
    if (!inbox.is_complete() || !take(slot, inbox)) return;
    ++slot.step;
    go_on(slot);
  }
}

bool SparseRunner::take(Slot& slot, Inbox& inbox) {
  const int expected = slot.places->node_at[static_cast<std::size_t>(slot.exchange().from())];
  if (inbox.from != expected) {
    violation_(inbox.from,
               remote_error("sparse message of segment " + std::to_string(slot.seq) + ", step " +
                            std::to_string(slot.step) + " was expected from node " +
                            std::to_string(mesh_->number_of(expected))));
    return false;
  }
  slot.heard.add(inbox.heard);
  if (slot.heard.is_in_doubt || slot.heard.is_mixed_up()) slot.exchange().keep_state();
  const SparseTimer timer(mesh_, options_.work ? &options_.work->select_ns : nullptr);
  const Status status = slot.exchange().receive(inbox.bytes);
  if (!status) {
    violation_(inbox.from, remote_error("sparse message of segment " + std::to_string(slot.seq) +
                                        " refused: " + status.message()));
    return false;
  }
  inbox.bytes.clear();
  return true;
}

void SparseRunner::end_round(Slot& slot) {
  SparseSegment& s = *slot.segment;
  const bool is_redone = slot.round > 0;
  if (options_.work != nullptr) add_to(options_.work->entries, slot.exchange().traffic().entries);
  const bool is_finite = !slot.exchange().has_non_finite();
  if (!is_redone) {
    s.outcome = slot.is_dense ? SparseSegment::Outcome::kDense : SparseSegment::Outcome::kSparse;
    if (slot.heard.is_in_doubt) s.outcome = SparseSegment::Outcome::kInDoubt;
    if (slot.heard.is_mixed_up()) s.outcome = SparseSegment::Outcome::kMixedUp;
    if (!is_finite) s.outcome = SparseSegment::Outcome::kNotFinite;
    const bool is_good =
        s.outcome == SparseSegment::Outcome::kSparse || s.outcome == SparseSegment::Outcome::kDense;
    if (!is_good) {
      if (options_.work != nullptr) add_to(options_.work->redone, 1);
      if (slot.second) std::swap(slot.first, slot.second);  // it was dense: see finish()
      slot.takes_residual = s.outcome == SparseSegment::Outcome::kInDoubt && s.is_certain &&
                            s.pool->options.residual != sparse::ResidualPolicy::kEf21;
      slot.round = 1;
      slot.step = 0;
      begin_dense(slot, slot.takes_residual);
      return go_on(slot);
    }
  }
  if (slot.second && slot.takes_residual && is_finite) {
    std::copy_n(slot.scratch.residual.begin(), s.elements, s.state.residual.begin());
    s.holds_residual = false;
  } else if (!slot.second) {
    s.holds_residual = true;
  }
  finish(slot);
}

void SparseRunner::finish(Slot& slot) {
  SparseSegment& s = *slot.segment;
  {
    const SparseTimer timer(mesh_, options_.work ? &options_.work->memory_ns : nullptr);
    slot.exchange().write_result(s.recv, s.element);
    if (slot.round > 0 && s.outcome == SparseSegment::Outcome::kNotFinite) {
      for (std::size_t b = 0; b < slot.first->blocks().size(); ++b) {
        const sparse::Entries& entries = slot.first->blocks()[b];
        const std::uint64_t base = slot.first->layout().begin_of(static_cast<int>(b));
        for (std::size_t i = 0; i < entries.count(); ++i) {
          sparse::store(s.recv, s.element, base + entries.indices()[i], entries.values()[i]);
        }
      }
    }
  }
  slot.phase = Phase::kDone;
  if (slot.parts_under_way == 0) close(slot);
}

// The result is there and all frames have left.
void SparseRunner::close(Slot& slot) {
  SparseSegment& s = *slot.segment;
  if (slot.first && !slot.is_dense) s.pool->free.push_back(std::move(slot.first));
  slot.first.reset();
  if (slot.second) {
    slot.second.reset();
    slot.scratch = {};
  }
  slot.segment = nullptr;
  Operation* const operation = slot.operation;
  if (options_.counters != nullptr) {
    options_.counters->ended(now(), operation->began_ns, s.elements * sparse::size_of(s.element));
  }
  if (options_.work != nullptr) {
    add_to(options_.work->segments, 1);
    add_to(options_.work->elements, s.elements);
  }
  // From here on the segment is its poster's.
  operation->state.store(Operation::State::kDone, std::memory_order_release);
  retire();
}

// Slots come free in order, so that a number never finds another's.
void SparseRunner::retire() {
  while (oldest_ < started_) {
    Slot& slot = slot_of(oldest_);
    if (slot.phase != Phase::kDone || slot.segment != nullptr) break;
    for (Inbox& inbox : slot.inboxes) {
      if (inbox.from >= 0 && inbox.missing > 0) {  // the network still writes into it
        return violation_(inbox.from,
                          remote_error("it sent a message of segment " + std::to_string(slot.seq) +
                                       " that no step takes"));
      }
      inbox.from = -1;
      inbox.heard = {};
    }
    slot.phase = Phase::kFree;
    ++oldest_;
  }
  if (oldest_ == started_ && options_.work != nullptr && active_since_ns_ > 0) {
    add_to(options_.work->span_ns, now() - std::exchange(active_since_ns_, 0));
  }
  start_segments();
}

std::vector<int> SparseRunner::waits_for() const {
  const Slot& slot = slots_[oldest_ % kSlots];
  if (slot.phase != Phase::kRunning || slot.exchange().is_done()) return {};
  return {slot.places->node_at[static_cast<std::size_t>(slot.exchange().from())]};
}

void SparseRunner::fail() {
  if (failed_) return;
  failed_ = true;
  if (options_.counters != nullptr) options_.counters->all_failed(now());
  // Inboxes and outboxes stay: the network may still use them.
  for (Slot& slot : slots_) {
    slot.phase = Phase::kFree;
    if (std::exchange(slot.segment, nullptr) == nullptr) continue;
    slot.operation->state.store(Operation::State::kFailed, std::memory_order_release);
  }
  for (const Queued& q : queue_) {
    q.operation->state.store(Operation::State::kFailed, std::memory_order_release);
  }
  queue_.clear();
  oldest_ = started_ = submitted_;
}

}  // namespace riffle
