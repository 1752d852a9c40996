#include "plugin/collective/relaxed/narrow_calls.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plugin/config/log.h"
#include "plugin/kernels/convert.h"
#include "plugin/kernels/float8_block.h"
#include "plugin/kernels/float_environment.h"
#include "plugin/kernels/types.h"

namespace riffle {
namespace {

// Numbers at a time: whole blocks, which the first cache holds with all that is made of them.
constexpr std::uint64_t kNumbers = 8 * kFloat8BlockElements;

void to_wire(WireFormat wire, const float* from, std::uint64_t count, std::byte* to) {
  if (wire == WireFormat::kBfloat16) return rules::narrow(from, DataType::kBfloat16, count, to);
  pack_float8(from, count, to);
}

void from_wire(WireFormat wire, const std::byte* from, std::uint64_t count, float* to) {
  if (wire == WireFormat::kBfloat16) return rules::widen(from, DataType::kBfloat16, count, to);
  unpack_float8(from, count, to);
}

// What rounding held back; where that is no number, because the gradient is none, it stays as it
// was.
void hold_back(const float* gradient, const float* sent, std::uint64_t count, float* error) {
  for (std::uint64_t k = 0; k < count; ++k) {
    const float left = gradient[k] - sent[k];
    error[k] = std::isfinite(left) ? left : error[k];
  }
}

bool are_finite(const float* numbers, std::uint64_t count) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t others = 0;
  for (std::uint64_t k = 0; k < count; ++k) {
    others += (std::bit_cast<std::uint32_t>(numbers[k]) & kExponent) == kExponent ? 1 : 0;
  }
  return others == 0;
}

// A call's elements in the job's memory and in its slot, those that mean something first.
struct CallView {
  explicit CallView(const StagedCall& call)
      : run(*call.run->narrow()),
        piece(call.run->position(call.position).piece),
        type(static_cast<DataType>(piece.type)),
        error(run.error(call.position)),
        valid_units(run.units(piece.valid)),
        units(valid_units + run.units(piece.count - piece.valid)) {}

  std::size_t in_job(std::uint64_t element) const { return element * size_of(type); }
  std::size_t in_slot(std::uint64_t element) const {
    const std::uint64_t before =
        element < piece.valid ? run.units(element) : valid_units + run.units(element - piece.valid);
    return before * size_of(run.type());
  }

  NarrowRun& run;
  const Layout::Piece& piece;
  const DataType type;
  float* const error;
  const std::uint64_t valid_units, units;
};

// Calls `step(first, count)` for the elements from `begin` to `end`.
template <class Step>
void by_steps(std::uint64_t begin, std::uint64_t end, Step step) {
  for (std::uint64_t first = begin; first < end; first += kNumbers) {
    step(first, std::min(kNumbers, end - first));
  }
}

}  // namespace

bool NarrowCalls::reserve(RelaxedRun& run, StagedCall* call) {
  call->narrow = run.narrow()->take();
  return call->narrow != nullptr;
}

void NarrowCalls::stage(StagedCall* call) {
  const CallView view(*call);
  NarrowSlot& slot = *call->narrow;
  counts_.calls.fetch_add(1, std::memory_order_relaxed);
  fill(*call);
  Operation& o = slot.sum;
  o.type = view.run.type();
  o.op = ReduceOp::kSum;
  o.count = view.units;
  o.valid = call->takes_part ? view.valid_units : Operation::kUnknown;
  o.send = slot.send;
  o.recv = slot.recv;
  o.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  post_(&o);
}

// What the call sends.
void NarrowCalls::fill(const StagedCall& call) {
  const CallView view(call);
  const std::lock_guard lock(memory_.mutex);
  if (memory_.is_fenced) return;  // it fails anyway
  const DefaultFloatEnvironment environment;
  float z[kNumbers], sent[kNumbers];
  by_steps(0, view.piece.valid, [&](std::uint64_t first, std::uint64_t n) {
    float* const error = view.error + first;
    std::byte* const wire = call.narrow->send + view.in_slot(first);
    rules::widen(call.send + view.in_job(first), view.type, n, z);
    if (call.takes_part) {
      for (std::uint64_t k = 0; k < n; ++k) z[k] += error[k];
    }
    to_wire(view.run.wire(), z, n, wire);
    if (call.takes_part) {
      from_wire(view.run.wire(), wire, n, sent);
      hold_back(z, sent, n, error);
    }
  });
  // Where lengths are not told all nodes sum these, too: of a node that is sure they are stale.
  std::fill_n(z, kNumbers, 0.0F);
  by_steps(view.piece.valid, view.piece.count, [&](std::uint64_t first, std::uint64_t n) {
    if (!call.takes_part) rules::widen(call.send + view.in_job(first), view.type, n, z);
    to_wire(view.run.wire(), z, n, call.narrow->send + view.in_slot(first));
  });
}

Result<bool> NarrowCalls::test(StagedCall* call) {
  const Operation::State state = call->narrow->sum.state.load(std::memory_order_acquire);
  if (state == Operation::State::kRunning) return false;
  if (state == Operation::State::kFailed) {
    failed_.push_back(std::move(call->run));
    return remote_error("a sum in a narrower type failed");
  }
  if (!finish(*call)) {
    counts_.not_finite.fetch_add(1, std::memory_order_relaxed);
    if (!std::exchange(told_not_finite_, true)) {
      log_warn("narrow: gradients that are not finite; all nodes get them so");
    }
  }
  call->run->narrow()->give_back(call->narrow);
  call->run->position(call->position).is_busy = false;
  call->run.reset();
  return true;
}

// False: some result is no number.
bool NarrowCalls::finish(const StagedCall& call) {
  const CallView view(call);
  const std::lock_guard lock(memory_.mutex);
  if (memory_.is_fenced) return true;
  const DefaultFloatEnvironment environment;
  bool is_finite = true;
  float result[kNumbers];
  const auto hand_over = [&](std::uint64_t first, std::uint64_t n) {
    from_wire(view.run.wire(), call.narrow->recv + view.in_slot(first), n, result);
    rules::narrow(result, view.type, n, call.recv + view.in_job(first));
  };
  by_steps(0, view.piece.valid, [&](std::uint64_t first, std::uint64_t n) {
    hand_over(first, n);
    is_finite = is_finite && are_finite(result, n);
  });
  const bool is_whole = call.narrow->sum.length > view.valid_units;  // the length was not known
  if (!call.takes_part && is_whole) by_steps(view.piece.valid, view.piece.count, hand_over);
  return is_finite;
}

}  // namespace riffle
