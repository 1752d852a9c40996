// Patterns: how one group exchanges. Each is a set of reactions without state of its own (the state
// is the GroupRun); the engine calls them and they call back into the ExecutorContext.
//
// Source of the ring: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009, section 3; of the direct exchange with weights: docs/algorithms.md.
#pragma once

#include "plugin/collective/engine/chunk.h"

namespace riffle {

// What a pattern may do. Implemented by the engine.
class ExecutorContext {
 public:
  virtual ~ExecutorContext() = default;
  // Sends a partial sum (needs a credit) or a final one of `range` to a member of the group.
  virtual void send_partial(Chunk& chunk, int group, int member, Range range,
                            const std::byte* data) = 0;
  virtual void send_final(Chunk& chunk, int group, int member, Range range) = 0;
  // The slot that a partial sum from `member` waited in is free again.
  virtual void release(Chunk& chunk, int group, int member, const void* slot) = 0;
  // recv[range] now holds the group's sum of one own fragment: the next level may run.
  virtual void reduced(Chunk& chunk, int group, Range range) = 0;
  // recv[range] now holds the sum over all nodes.
  virtual void completed(Chunk& chunk, int group, Range range) = 0;
};

class PatternExecutor {
 public:
  virtual ~PatternExecutor() = default;
  // Sizes and clears the run's state; run.cuts is set.
  virtual void start(Chunk& chunk, int group) const = 0;
  // Frames of partial sums that this node will send to each member: added to frames[member].
  virtual void count_partials(const Chunk& chunk, int group, int* frames) const = 0;
  // Our own partial sum of `range`, inside one cell, is ready.
  virtual void own_ready(ExecutorContext& context, Chunk& chunk, int group, Range range) const = 0;
  // A partial sum from `member` arrived in `slot`.
  virtual void partial_arrived(ExecutorContext& context, Chunk& chunk, int group, int member,
                               Range range, const void* slot) const = 0;
  // The own fragment `range` is final: tell the others.
  virtual void gather(ExecutorContext& context, Chunk& chunk, int group, Range range) const = 0;
  // A final fragment from `member` arrived in place.
  virtual void final_arrived(ExecutorContext& context, Chunk& chunk, int group, int member,
                             Range range) const = 0;
  // The shard that a frame from `member` at `range.begin` must belong to; -1 if it cannot come from
  // it.
  virtual int shard_of_partial(const Chunk& chunk, int group, int member,
                               std::uint64_t element) const = 0;
  virtual int shard_of_final(const Chunk& chunk, int group, int member,
                             std::uint64_t element) const = 0;
};

const PatternExecutor& executor(Pattern pattern);
const PatternExecutor& direct_executor();
const PatternExecutor& ring_executor();

}  // namespace riffle
