#include "plugin/collective/engine/group_executor.h"

#include <algorithm>
#include <span>

#include "plugin/kernels/reduce.h"
#include "topology/base/check.h"

namespace riffle::group_executor {
namespace {

// Contributions to one fragment that this node adds up, and where they wait: its operands, in
// order.
struct Meeting {
  std::int32_t* missing;
  std::span<const void*> operands;
};

Meeting meeting_of(const Chunk& chunk, int group, int shard, std::uint64_t element) {
  GroupRun& run = chunk.runs[group];
  const std::size_t width = chunk.program->groups[group].routes[shard].operands();
  const std::size_t fragment = static_cast<std::size_t>(run.first_fragment[shard]) +
                               chunk.shard(group, shard).fragment_at(element);
  const std::size_t first =
      run.first_waiting[shard] + (fragment - run.first_fragment[shard]) * width;
  return {&run.missing[fragment], std::span(run.waiting).subspan(first, width)};
}

// Where it waits for the others.
const void*& place_of(const Chunk& chunk, const Meeting& meeting, int group, int shard,
                      int member) {
  const ShardRoute& route = chunk.program->groups[group].routes[shard];
  return meeting.operands[route.place_of(route.child(member))];
}

// Fragments of the whole span, of which limits of shards may cut one in two.
Shard span_of(const Chunk& chunk, const GroupRun& run) {
  return {{run.cuts.front(), run.cuts.back()}, chunk.fragment_elements};
}

void add_up(const Chunk& chunk, int group, const ShardRoute& route, Range range,
            std::span<const void*> operands) {
  if (chunk.operation->is_dry) return;
  operands[route.own_place] = chunk.own_partial(group, range.begin);
  // All-gather: the others only said that they are ready; the "sum" is our own block.
  if (!chunk.carries_partials()) operands = operands.subspan(route.own_place, 1);
  reduce(chunk.at_recv(range.begin), operands, range.size(), chunk.operation->type,
         chunk.operation->op);
}

// One more of the contributions is here; adds them up when it was the last.
void contribute(ExecutorContext& context, Chunk& chunk, int group, int shard, Range range,
                const Meeting& meeting) {
  if (--*meeting.missing > 0) return;
  const LocalGroup& local = chunk.program->groups[group];
  const ShardRoute& route = local.routes[shard];
  if (chunk.is_traced) context.sum_begins();
  add_up(chunk, group, route, range, meeting.operands);
  if (chunk.is_traced) context.sum_ends(chunk, group, range);
  for (std::size_t i = 0; i < route.partials_from.size(); ++i) {
    context.release(chunk, group, route.partials_from[i], meeting.operands[route.place_of(i)]);
  }
  if (shard == local.me) {
    context.reduced(chunk, group, range);
  } else {
    context.send_partial(chunk, group, route.partial_to, range, chunk.at_recv(range.begin));
  }
}

void pass_on_final(ExecutorContext& context, Chunk& chunk, int group, int shard, Range range) {
  for (const int member : chunk.program->groups[group].routes[shard].sum_to) {
    context.send_final(chunk, group, member, range);
  }
}

}  // namespace

void start(Chunk& chunk, int group) {
  const LocalGroup& local = chunk.program->groups[group];
  GroupRun& run = chunk.runs[group];
  run.first_fragment.assign(local.size(), 0);
  run.first_waiting.assign(local.size(), 0);
  run.missing.clear();
  std::size_t waiting = 0;
  for (int shard = 0; shard < local.size(); ++shard) {
    const ShardRoute& route = local.routes[shard];
    if (route.partials_from.empty()) continue;
    const int fragments = chunk.shard(group, shard).fragments();
    run.first_fragment[shard] = static_cast<std::int32_t>(run.missing.size());
    run.first_waiting[shard] = waiting;
    run.missing.insert(run.missing.end(), fragments, static_cast<std::int32_t>(route.operands()));
    waiting += fragments * route.operands();
  }
  run.waiting.assign(waiting, nullptr);
  run.final_comes.assign(span_of(chunk, run).fragments() + local.size(), false);
}

void count_partials(const Chunk& chunk, int group, int* frames) {
  const LocalGroup& local = chunk.program->groups[group];
  for (int shard = 0; shard < local.size(); ++shard) {
    if (shard == local.me) continue;
    frames[local.routes[shard].partial_to] += chunk.shard(group, shard).fragments();
  }
}

void own_ready(ExecutorContext& context, Chunk& chunk, int group, Range range) {
  const LocalGroup& local = chunk.program->groups[group];
  const GroupRun& run = chunk.runs[group];
  const int first = member_at(run, range.begin);
  int count = 0;
  for (int m = first; m < local.size() && run.cuts[m] < range.end; ++m) ++count;
  // Where each shard goes to its owner, start behind ourselves and go round, so that not all nodes
  // send to member 0 first.
  const int after_me = local.me + 1 - first;
  const int shift = local.sums_in_member_order ? (after_me % count + count) % count : 0;
  for (int i = 0; i < count; ++i) {
    const int shard = first + (i + shift) % count;
    const Range part = intersect({run.cuts[shard], run.cuts[shard + 1]}, range);
    if (part.is_empty()) continue;
    const ShardRoute& route = local.routes[shard];
    if (route.partials_from.empty()) {
      context.send_partial(chunk, group, route.partial_to, part,
                           chunk.own_partial(group, part.begin));
    } else {
      contribute(context, chunk, group, shard, part, meeting_of(chunk, group, shard, part.begin));
    }
  }
}

void partial_arrived(ExecutorContext& context, Chunk& chunk, int group, int member, Range range,
                     const void* slot) {
  const int shard = member_at(chunk.runs[group], range.begin);
  const Meeting meeting = meeting_of(chunk, group, shard, range.begin);
  const void*& place = place_of(chunk, meeting, group, shard, member);
  RIFFLE_CHECK(place == nullptr, "a partial sum arrived twice");
  place = slot;
  contribute(context, chunk, group, shard, range, meeting);
}

void gather(ExecutorContext& context, Chunk& chunk, int group, Range range) {
  pass_on_final(context, chunk, group, chunk.program->groups[group].me, range);
}

void final_arrived(ExecutorContext& context, Chunk& chunk, int group, int /*member*/, Range range) {
  pass_on_final(context, chunk, group, member_at(chunk.runs[group], range.begin), range);
  context.completed(chunk, group, range);
}

int shard_of_partial(const Chunk& chunk, int group, int member, std::uint64_t element) {
  const int shard = member_at(chunk.runs[group], element);
  const ShardRoute& route = chunk.program->groups[group].routes[shard];
  return route.child(member) < route.partials_from.size() ? shard : -1;
}

int shard_of_final(const Chunk& chunk, int group, int member, std::uint64_t element) {
  const LocalGroup& local = chunk.program->groups[group];
  const int shard = member_at(chunk.runs[group], element);
  return shard != local.me && local.routes[shard].sum_from == member ? shard : -1;
}

bool has_partial(const Chunk& chunk, int group, int member, std::uint64_t element) {
  const int shard = member_at(chunk.runs[group], element);
  const Meeting meeting = meeting_of(chunk, group, shard, element);
  return place_of(chunk, meeting, group, shard, member) != nullptr;
}

bool expect_final(Chunk& chunk, int group, std::uint64_t element) {
  GroupRun& run = chunk.runs[group];
  // Every limit of a shard adds one to the fragments of the span.
  auto comes = run.final_comes[span_of(chunk, run).fragment_at(element) + member_at(run, element)];
  if (comes) return false;
  comes = true;
  return true;
}

}  // namespace riffle::group_executor
