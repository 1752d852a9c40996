// GroupExecutor: runs the exchange of one group, fragment by fragment, for any pattern: it follows
// the routes of the group's shards (program.h). A set of reactions without state of its own (the
// state is the GroupRun); the engine calls them and they call back into the ExecutorContext.
//
// A partial sum that is passed on is kept in the receive buffer at its own place: that part of the
// buffer gets its final value only later, so the slots of what was added are free at once and no
// chain of waiting slots can close into a circle.
#pragma once

#include "plugin/collective/engine/chunk.h"

namespace riffle {

// What a group may do. Implemented by the engine.
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
  // Of traced chunks: contributions to a fragment are about to be added, and were.
  virtual void sum_begins() = 0;
  virtual void sum_ends(const Chunk& chunk, int group, Range range) = 0;
};

namespace group_executor {

// Sizes and clears the run's state; run.cuts is set.
void start(Chunk& chunk, int group);
// Frames of partial sums that this node will send to each member: added to frames[member].
void count_partials(const Chunk& chunk, int group, int* frames);
// Our own partial sum of `range`, inside one fragment of the chunk, is ready.
void own_ready(ExecutorContext& context, Chunk& chunk, int group, Range range);
// A partial sum from `member` arrived in `slot`.
void partial_arrived(ExecutorContext& context, Chunk& chunk, int group, int member, Range range,
                     const void* slot);
// The own fragment `range` is final: tell the others.
void gather(ExecutorContext& context, Chunk& chunk, int group, Range range);
// A final fragment from `member` arrived in place.
void final_arrived(ExecutorContext& context, Chunk& chunk, int group, int member, Range range);
// The shard that a frame from `member` at `element` must belong to; -1 if it cannot come from it.
int shard_of_partial(const Chunk& chunk, int group, int member, std::uint64_t element);
int shard_of_final(const Chunk& chunk, int group, int member, std::uint64_t element);
// Whether the partial sum from `member` of the fragment at `element` has arrived: it comes once.
bool has_partial(const Chunk& chunk, int group, int member, std::uint64_t element);
// The final sum of that fragment gets its place in the result. False: it had it already.
bool expect_final(Chunk& chunk, int group, std::uint64_t element);

}  // namespace group_executor
}  // namespace riffle
