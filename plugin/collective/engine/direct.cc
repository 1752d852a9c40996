// The direct pattern: every member sends each other member that member's shard, owners reduce,
// owners send the final shard to everybody. Two steps; a member of weight w moves S(1 + (p-2)w)
// each way.
#include <span>

#include "plugin/collective/engine/pattern.h"
#include "plugin/kernels/reduce.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

class Direct final : public PatternExecutor {
 public:
  void start(Chunk& chunk, int group) const override {
    GroupRun& run = chunk.runs[group];
    const int members = chunk.program->groups[group].size();
    const int fragments = chunk.own_shard(group).fragments();
    run.missing.assign(fragments, members);
    run.waiting.assign(static_cast<std::size_t>(fragments) * members, nullptr);
  }

  void count_partials(const Chunk& chunk, int group, int* frames) const override {
    const LocalGroup& local = chunk.program->groups[group];
    for (int member = 0; member < local.size(); ++member) {
      if (member != local.me) frames[member] += chunk.shard(group, member).fragments();
    }
  }

  void own_ready(ExecutorContext& context, Chunk& chunk, int group, Range range) const override {
    const LocalGroup& local = chunk.program->groups[group];
    const GroupRun& run = chunk.runs[group];
    // Start behind ourselves and go round, so that not all nodes send to member 0 first.
    const int first = member_at(run, range.begin);
    int count = 0;
    for (int m = first; m < local.size() && run.cuts[m] < range.end; ++m) ++count;
    const int shift = ((local.me - first) % count + count) % count;
    for (int i = 0; i < count; ++i) {
      const int member = first + (i + shift + 1) % count;
      const Range part = intersect({run.cuts[member], run.cuts[member + 1]}, range);
      if (part.is_empty()) continue;
      if (member == local.me) {
        contribute(context, chunk, group, part);
      } else {
        context.send_partial(chunk, group, member, part, chunk.own_partial(group, part.begin));
      }
    }
  }

  void partial_arrived(ExecutorContext& context, Chunk& chunk, int group, int member, Range range,
                       const void* slot) const override {
    const int members = chunk.program->groups[group].size();
    const int fragment = chunk.own_shard(group).fragment_at(range.begin);
    const void*& place =
        chunk.runs[group].waiting[static_cast<std::size_t>(fragment) * members + member];
    RIFFLE_CHECK(place == nullptr, "a contribution arrived twice");
    place = slot;
    contribute(context, chunk, group, range);
  }

  void gather(ExecutorContext& context, Chunk& chunk, int group, Range range) const override {
    const LocalGroup& local = chunk.program->groups[group];
    for (int i = 1; i < local.size(); ++i) {
      context.send_final(chunk, group, (local.me + i) % local.size(), range);
    }
  }

  void final_arrived(ExecutorContext& context, Chunk& chunk, int group, int /*member*/,
                     Range range) const override {
    context.completed(chunk, group, range);
  }

  int shard_of_partial(const Chunk& chunk, int group, int, std::uint64_t) const override {
    return chunk.program->groups[group].me;
  }
  int shard_of_final(const Chunk&, int, int member, std::uint64_t) const override { return member; }

 private:
  // One more of the contributions to an own fragment is here; reduces when it was the last.
  static void contribute(ExecutorContext& context, Chunk& chunk, int group, Range range) {
    GroupRun& run = chunk.runs[group];
    const LocalGroup& local = chunk.program->groups[group];
    const int fragment = chunk.own_shard(group).fragment_at(range.begin);
    if (--run.missing[fragment] > 0) return;

    const void** waiting = &run.waiting[static_cast<std::size_t>(fragment) * local.size()];
    reduce_in_member_order(chunk, group, range, waiting);
    for (int member = 0; member < local.size(); ++member) {
      if (member != local.me) context.release(chunk, group, member, waiting[member]);
    }
    context.reduced(chunk, group, range);
  }

  static void reduce_in_member_order(Chunk& chunk, int group, Range range, const void** waiting) {
    if (chunk.operation->is_dry) return;
    const LocalGroup& local = chunk.program->groups[group];
    waiting[local.me] = chunk.own_partial(group, range.begin);
    // All-gather: the others only said that they are ready; the "sum" is our own block.
    const std::span<const void* const> operands = chunk.carries_partials()
                                                      ? std::span(waiting, local.size())
                                                      : std::span(waiting + local.me, 1);
    reduce(chunk.at_recv(range.begin), operands, range.size(), chunk.operation->type,
           chunk.operation->op);
  }
};

}  // namespace

const PatternExecutor& direct_executor() {
  static const Direct instance;
  return instance;
}

}  // namespace riffle
