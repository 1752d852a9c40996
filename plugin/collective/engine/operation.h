// Operation: one collective call from the moment NCCL posts it until NCCL has seen it done.
//
// Filled by NCCL's progress thread, then owned by the engine's thread until `state` leaves kRunning
// (release), after which the poster may read `error` (acquire) and recycle it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plugin/kernels/types.h"

namespace riffle {

enum class Collective : std::uint8_t { kAllReduce = 0, kReduceScatter = 1, kAllGather = 2 };

struct SparseSegment;   // sparse_segment.h
class SharedOperation;  // shared_operation.h

struct Operation {
  enum class State : int { kFree, kRunning, kDone, kFailed };

  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // Address of element 0 of the whole vector. For reduce-scatter `recv`, and for all-gather `send`,
  // are shifted so that only the own block's part is valid memory.
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  std::uint64_t count = 0;   // elements of the whole vector (window)
  std::uint64_t block = 0;   // reduce-scatter, all-gather: elements per node in the whole vector
  std::uint64_t window = 0;  // ... and its element at which our `count` elements begin
  // For studies of time on a network that carries no payloads (plugin/transport/sim): every step is
  // made, but no memory is touched and nothing is added.
  bool is_dry = false;
  // An all-reduce runs over the exact lanes of the plan, chunk s over lane s mod lanes. Or it is
  // one chunk and sums within the groups of one step of the plan's relaxed plans: step `step`
  // modulo their number, lane `lane` modulo theirs. A plan that has none runs it over the exact
  // lanes.
  static constexpr std::int64_t kExact = -1;
  std::int64_t step = kExact;
  std::uint32_t lane = 0;
  // How many elements, from the first on, mean something, if this node knows; the others' `recv`
  // may be left as it was (lengths.h).
  static constexpr std::uint64_t kUnknown = ~0ull;
  std::uint64_t valid = kUnknown;
  // Where nodes may be lost and the others go on (survivors.h): a copy of the input if the
  // operation overwrites it (in place), else null. The poster's, until the operation is over.
  const std::byte* kept = nullptr;

  // A relaxed mode's sum of what nodes bring to an average, on memory of the mode's own, with a
  // trailer that says who took part (relaxed_calls.h). After a loss it is not scaled; one that was
  // under way does not begin again, but comes back as not averaged.
  bool is_average = false;
  // ... and valid when it is over: among how many nodes it ran, of which its group may be a part;
  // 0: it came back as not averaged, on all of them.
  int nodes = 0;

  // Not null: this is no operation of the engine but a sparse exchange, and the segment says all of
  // it; nothing here counts but the state.
  SparseSegment* sparse = nullptr;

  std::atomic<State> state{State::kFree};

  // Not null: one of several engines runs it as its part of that operation.
  SharedOperation* shared = nullptr;

  // Engine thread only, but that the poster may read `length` when it is over.
  std::uint64_t length = 0;        // of `count`, what is reduced: as all nodes agreed
  std::uint64_t next_element = 0;  // first element not yet in a chunk
  int running_chunks = 0;
  std::uint64_t began_ns = 0;  // only where operations are counted
  // Only where calls are traced (call_trace.h): which all-reduce it is, when it was posted.
  bool is_traced = false;
  std::uint64_t call = 0, posted_ns = 0;

  // Takes over what is asked for.
  void copy_call(const Operation& other);
  std::size_t bytes() const { return count * size_of(type); }
  // It is over, if it was not: its poster sees `outcome`.
  void end(State outcome);
};

}  // namespace riffle
