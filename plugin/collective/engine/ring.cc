// The ring pattern: the partial sum of shard j starts behind its owner, at member j+1, and travels
// once around, every member adding its own; the owner adds last and sends the sum around again.
// 2(p-1) steps; every member moves 2(p-1)/p of the span, whatever the position of slow links.
//
// A passing partial sum is kept in the receive buffer at its own place: that part of the buffer
// gets its final value only later, so the slot it arrived in is free at once and no chain of
// waiting slots can close into a circle.
#include <array>

#include "plugin/collective/engine/pattern.h"
#include "plugin/kernels/reduce.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

class Ring final : public PatternExecutor {
 public:
  void start(Chunk& chunk, int group) const override {
    GroupRun& run = chunk.runs[group];
    const int members = chunk.program->groups[group].size();
    run.first_fragment.assign(members + 1, 0);
    for (int m = 0; m < members; ++m) {
      run.first_fragment[m + 1] = run.first_fragment[m] + chunk.shard(group, m).fragments();
    }
    run.missing.assign(run.first_fragment[members], 1);
    run.waiting.assign(run.first_fragment[members], nullptr);
  }

  void count_partials(const Chunk& chunk, int group, int* frames) const override {
    const LocalGroup& local = chunk.program->groups[group];
    for (int shard = 0; shard < local.size(); ++shard) {
      if (shard != local.me) frames[next(local)] += chunk.shard(group, shard).fragments();
    }
  }

  void own_ready(ExecutorContext& context, Chunk& chunk, int group, Range range) const override {
    const LocalGroup& local = chunk.program->groups[group];
    GroupRun& run = chunk.runs[group];
    for (int m = member_at(run, range.begin); m < local.size() && run.cuts[m] < range.end; ++m) {
      const Range part = intersect({run.cuts[m], run.cuts[m + 1]}, range);
      if (part.is_empty()) continue;
      const int fragment = fragment_of(chunk, group, m, part);
      run.missing[fragment] = 0;
      if (m == previous(local)) {  // we are the first on this shard's way
        context.send_partial(chunk, group, next(local), part, chunk.own_partial(group, part.begin));
      } else if (run.waiting[fragment] != nullptr) {
        add_own(context, chunk, group, m, part, run.waiting[fragment]);
      }
    }
  }

  void partial_arrived(ExecutorContext& context, Chunk& chunk, int group, int /*member*/,
                       Range range, const void* slot) const override {
    GroupRun& run = chunk.runs[group];
    const int shard = member_at(run, range.begin);
    const int fragment = fragment_of(chunk, group, shard, range);
    RIFFLE_CHECK(run.waiting[fragment] == nullptr, "a partial sum arrived twice");
    run.waiting[fragment] = slot;
    if (run.missing[fragment] == 0) add_own(context, chunk, group, shard, range, slot);
  }

  void gather(ExecutorContext& context, Chunk& chunk, int group, Range range) const override {
    context.send_final(chunk, group, next(chunk.program->groups[group]), range);
  }

  void final_arrived(ExecutorContext& context, Chunk& chunk, int group, int /*member*/,
                     Range range) const override {
    const LocalGroup& local = chunk.program->groups[group];
    if (member_at(chunk.runs[group], range.begin) != next(local)) {
      context.send_final(chunk, group, next(local), range);
    }
    context.completed(chunk, group, range);
  }

  int shard_of_partial(const Chunk& chunk, int group, int member,
                       std::uint64_t element) const override {
    const LocalGroup& local = chunk.program->groups[group];
    const int shard = member_at(chunk.runs[group], element);
    // From the previous member only, and never the shard whose way begins here.
    return member == previous(local) && shard != previous(local) ? shard : -1;
  }
  int shard_of_final(const Chunk& chunk, int group, int member,
                     std::uint64_t element) const override {
    const LocalGroup& local = chunk.program->groups[group];
    const int shard = member_at(chunk.runs[group], element);
    return member == previous(local) && shard != local.me ? shard : -1;
  }

 private:
  static int next(const LocalGroup& g) { return (g.me + 1) % g.size(); }
  static int previous(const LocalGroup& g) { return (g.me + g.size() - 1) % g.size(); }
  static int fragment_of(const Chunk& chunk, int group, int shard, Range range) {
    return chunk.runs[group].first_fragment[shard] +
           chunk.shard(group, shard).fragment_at(range.begin);
  }

  static void add_own(ExecutorContext& context, Chunk& chunk, int group, int shard, Range range,
                      const void* slot) {
    const LocalGroup& local = chunk.program->groups[group];
    const std::array<const void*, 2> operands = {slot, chunk.own_partial(group, range.begin)};
    std::byte* out = chunk.at_recv(range.begin);
    if (!chunk.operation->is_dry) {
      reduce(out, operands, range.size(), chunk.operation->type, chunk.operation->op);
    }
    context.release(chunk, group, previous(local), slot);
    if (shard == local.me) {
      context.reduced(chunk, group, range);
    } else {
      context.send_partial(chunk, group, next(local), range, out);
    }
  }
};

}  // namespace

const PatternExecutor& ring_executor() {
  static const Ring instance;
  return instance;
}

const PatternExecutor& executor(Pattern pattern) {
  return pattern == Pattern::kRing ? ring_executor() : direct_executor();
}

}  // namespace riffle
