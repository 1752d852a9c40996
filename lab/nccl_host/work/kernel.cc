#include "lab/nccl_host/work/kernel.h"

#include <algorithm>
#include <array>

namespace riffle::host {
namespace {

constexpr std::size_t kOperandsMax = 8;  // a tree has three children at most

bool is_integer(DataType t) { return t <= DataType::kUint64; }

Averaging averaging_of(const Program& p, const Primitive& q) {
  Averaging a;
  if (p.op != Op::kAvg) return a;
  if (is_integer(p.type)) {
    if (q.last) a.divide_result = p.ranks;
  } else if (q.source == Local::kInput) {
    a.scale_first = 1.0 / p.ranks;
  }
  return a;
}

}  // namespace

// A program starts on a chunk boundary; the skipped steps are credits handed back.
void Lane::begin_program() {
  const Program& p = programs_[program_];
  const auto unit = static_cast<std::uint64_t>(p.steps.chunk);
  for (Fifo* f : p.receives) f->head = round_up(f->head, unit);
  for (Fifo* f : p.sends) f->tail = round_up(f->tail, unit);
  primitive_ = 0;
  begun_ = true;
  if (!p.primitives.empty()) begin_primitive();
}

// NCCL's slices: at least a 32nd of the capacity, a multiple of 16 elements, even over the chunk.
void Lane::begin_primitive() {
  const Program& p = programs_[program_];
  const std::size_t n = p.primitives[primitive_].count;
  const auto slices = static_cast<std::size_t>(p.steps.chunk / p.steps.slice);
  const std::size_t capacity =
      p.step_bytes / size_of(p.type) * static_cast<std::size_t>(p.steps.slice);
  const std::size_t even = (n + 16 * slices - 1) / (16 * slices) * 16;
  slice_count_ = std::max(even, capacity / 32);
  slice_ = 0;
  offset_ = 0;
}

bool Lane::connections_ready(const Program& p, const Primitive& q) const {
  const auto steps = static_cast<std::uint64_t>(p.steps.slice);
  if (q.receive) {
    for (const Fifo* f : p.receives) {
      if (f->tail < f->head + steps) return false;
    }
  }
  if (q.send) {
    for (const Fifo* f : p.sends) {
      if (f->tail + steps > f->credit) return false;
    }
  }
  return true;
}

void Lane::move_slice(const Program& p, const Primitive& q, std::size_t count) {
  const std::size_t element = size_of(p.type);
  std::array<const void*, kOperandsMax> sources;
  std::array<void*, kOperandsMax> targets;
  std::size_t n_sources = 0, n_targets = 0;
  auto local = [&](Local l, std::size_t at) {
    const void* base = l == Local::kInput ? p.input : p.output;
    return static_cast<const std::byte*>(base) + (at + offset_) * element;
  };
  if (q.source != Local::kNone) sources[n_sources++] = local(q.source, q.source_offset);
  if (q.target != Local::kNone) {
    targets[n_targets++] = const_cast<std::byte*>(local(q.target, q.target_offset));
  }
  if (q.receive) {
    for (const Fifo* f : p.receives) sources[n_sources++] = f->slot[f->head % kSteps];
  }
  if (q.send) {
    for (Fifo* f : p.sends) {
      f->bytes[f->tail % kSteps] = count * element;
      targets[n_targets++] = f->slot[f->tail % kSteps];
    }
  }
  reduce_copy({targets.data(), n_targets}, {sources.data(), n_sources}, count, p.type,
              network_op(p.op), averaging_of(p, q));
  const auto steps = static_cast<std::uint64_t>(p.steps.slice);
  if (q.receive) {
    for (Fifo* f : p.receives) f->head += steps;
  }
  if (q.send) {
    for (Fifo* f : p.sends) f->tail += steps;
  }
}

bool Lane::may_begin() const {
  const auto& after = programs_[program_].after;
  return !after || *after;
}

bool Lane::step() {
  if (done()) return false;
  if (!begun_ && !may_begin()) return false;
  if (!begun_) begin_program();
  const Program& p = programs_[program_];
  bool moved = false;
  if (primitive_ < p.primitives.size()) {
    const Primitive& q = p.primitives[primitive_];
    if (!connections_ready(p, q)) return false;
    const std::size_t count = std::min(slice_count_, q.count - offset_);
    move_slice(p, q, count);
    offset_ += count;
    moved = true;
    if (++slice_ == p.steps.chunk / p.steps.slice && ++primitive_ < p.primitives.size()) {
      begin_primitive();
    }
  }
  if (primitive_ == p.primitives.size()) {
    if (p.done) *p.done = true;
    ++program_;
    begun_ = false;
    moved = true;
  }
  return moved;
}

bool Kernel::step() {
  if (launches_.empty()) return false;
  bool moved = false;
  bool done = true;
  for (Lane& lane : launches_.front()) {
    moved |= lane.step();
    done &= lane.done();
  }
  if (done) {
    launches_.pop_front();
    ++finished_;
    moved = true;
  }
  return moved;
}

}  // namespace riffle::host
