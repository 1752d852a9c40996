#include "plugin/collective/relaxed/narrow_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugin/config/log.h"
#include "plugin/kernels/convert.h"
#include "plugin/kernels/float8_block.h"
#include "plugin/kernels/float_environment.h"
#include "plugin/kernels/types.h"

namespace riffle {
namespace {

// Numbers at a time: whole blocks, which the first cache holds with all that is made of them.
constexpr std::uint64_t kStep = 8 * kFloat8BlockElements;

void to_wire(WireFormat wire, const float* from, std::uint64_t count, std::byte* to) {
  if (wire == WireFormat::kBfloat16) return rules::narrow(from, DataType::kBfloat16, count, to);
  pack_float8(from, count, to);
}

void from_wire(WireFormat wire, const std::byte* from, std::uint64_t count, float* to) {
  if (wire == WireFormat::kBfloat16) return rules::widen(from, DataType::kBfloat16, count, to);
  unpack_float8(from, count, to);
}

// How many nodes are in doubt, roughly: what counts is whether it is 0.
void put_doubt(const NarrowRun& run, std::uint64_t units, bool is_in_doubt, std::byte* to) {
  const float doubt = is_in_doubt ? 1.0F : 0.0F;
  to_wire(run.wire(), &doubt, 1, to + units * size_of(run.type()));
}

bool has_doubt(const NarrowRun& run, std::uint64_t units, const std::byte* from) {
  float doubt = 0;
  from_wire(run.wire(), from + units * size_of(run.type()), 1, &doubt);
  return doubt != 0;
}

struct CallView {
  explicit CallView(const StagedCall& call)
      : run(*call.run->narrow()),
        piece(call.run->position(call.position).piece),
        type(static_cast<DataType>(piece.type)),
        error(run.error(call.position)) {}
  NarrowRun& run;
  const Layout::Piece& piece;
  const DataType type;
  float* const error;
};

}  // namespace

bool NarrowCalls::reserve(RelaxedRun& run, StagedCall* call) {
  call->narrow = run.narrow()->take();
  return call->narrow != nullptr;
}

void NarrowCalls::stage(const CallShape& /*shape*/, const CallPlace& /*place*/, StagedCall* call) {
  const CallView view(*call);
  NarrowSlot& slot = *call->narrow;
  const std::uint64_t units = view.run.units(view.piece.valid);
  counts_.calls.fetch_add(1, std::memory_order_relaxed);
  if (call->takes_part) {
    fill(*call);
  } else {
    std::memset(slot.send, 0, units * size_of(view.run.type()));
  }
  put_doubt(view.run, units, !call->takes_part, slot.send);
  slot.is_exact = false;
  Operation& o = slot.sum;
  o.type = view.run.type();
  o.op = ReduceOp::kSum;
  o.count = o.valid = units + 1;
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
  float z[kStep];
  for (std::uint64_t first = 0; first < view.piece.valid; first += kStep) {
    const std::uint64_t n = std::min(kStep, view.piece.valid - first);
    rules::widen(call.send + first * size_of(view.type), view.type, n, z);
    const float* const error = view.error + first;
    for (std::uint64_t k = 0; k < n; ++k) z[k] += error[k];
    to_wire(view.run.wire(), z, n,
            call.narrow->send + view.run.units(first) * size_of(view.run.type()));
  }
}

Result<bool> NarrowCalls::test(StagedCall* call) {
  NarrowSlot& slot = *call->narrow;
  const Operation& running = slot.is_exact ? slot.exact : slot.sum;
  const Operation::State state = running.state.load(std::memory_order_acquire);
  if (state == Operation::State::kRunning) return false;
  const bool has_failed = state == Operation::State::kFailed;
  if (!has_failed && !slot.is_exact) {
    const CallView view(*call);
    if (has_doubt(view.run, view.run.units(view.piece.valid), slot.recv)) {
      sum_exactly(*call);
      return false;
    }
    finish(*call);
  }
  call->run->narrow()->give_back(call->narrow);
  call->narrow = nullptr;
  call->run->position(call->position).is_busy = false;
  call->run.reset();
  if (has_failed) return remote_error("a sum in a narrower type failed");
  return true;
}

// All nodes find the same doubt, and do the same.
void NarrowCalls::sum_exactly(const StagedCall& call) {
  const CallView view(call);
  if (!std::exchange(told_doubt_, true)) {
    log_info("narrow: a node is not sure which gradients a call holds; all sum it exactly");
  }
  NarrowSlot& slot = *call.narrow;
  slot.is_exact = true;
  Operation& o = slot.exact;
  o.type = view.type;
  o.op = ReduceOp::kSum;
  o.count = view.piece.count;
  o.valid = call.takes_part ? view.piece.valid : Operation::kUnknown;
  o.send = call.send;
  o.recv = call.recv;
  o.kept = call.kept;
  o.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  post_(&o);
}

// The job's input is as it was: nothing was written over it so far.
void NarrowCalls::finish(const StagedCall& call) {
  const CallView view(call);
  const std::lock_guard lock(memory_.mutex);
  if (memory_.is_fenced) return;
  const DefaultFloatEnvironment environment;
  const std::size_t unit = size_of(view.run.type()), element = size_of(view.type);
  float z[kStep], sent[kStep];
  for (std::uint64_t first = 0; first < view.piece.valid; first += kStep) {
    const std::uint64_t n = std::min(kStep, view.piece.valid - first);
    const std::uint64_t at = view.run.units(first) * unit;
    rules::widen(call.send + first * element, view.type, n, z);
    from_wire(view.run.wire(), call.narrow->send + at, n, sent);
    float* const error = view.error + first;
    for (std::uint64_t k = 0; k < n; ++k) {
      const float left = z[k] + error[k] - sent[k];
      error[k] = std::isfinite(left) ? left : error[k];
    }
    from_wire(view.run.wire(), call.narrow->recv + at, n, z);
    rules::narrow(z, view.type, n, call.recv + first * element);
  }
}

}  // namespace riffle
