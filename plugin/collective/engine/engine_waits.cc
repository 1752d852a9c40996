// Engine: which nodes the oldest work under way waits for.
#include <algorithm>
#include <set>

#include "plugin/collective/engine/engine.h"

namespace riffle {
namespace {

// Of the fragments that this node adds up: whose contribution is not here.
void add_missing(const Chunk& chunk, int group, int shard, std::set<int>* nodes) {
  const LocalGroup& local = chunk.program->groups[group];
  const ShardRoute& route = local.routes[shard];
  const GroupRun& run = chunk.runs[group];
  if (route.partials_from.empty()) return;
  for (int i = 0; i < chunk.shard(group, shard).fragments(); ++i) {
    const int fragment = run.first_fragment[shard] + i;
    if (run.missing[fragment] == 0) continue;
    const std::size_t first = run.first_waiting[shard] + i * route.operands();
    for (std::size_t child = 0; child < route.partials_from.size(); ++child) {
      if (run.waiting[first + route.place_of(child)] != nullptr) continue;
      nodes->insert(local.group.members[route.partials_from[child]]);
    }
  }
}

}  // namespace

std::vector<int> Engine::waits_for() const {
  const Chunk* oldest = nullptr;
  for (const Chunk& chunk : chunks_) {
    if (chunk.active && (oldest == nullptr || chunk.seq < oldest->seq)) oldest = &chunk;
  }
  if (oldest != nullptr) return waits_of(*oldest);
  if (next_seq_ >= hold_) return {0};  // which says where another plan begins
  return lengths_.unanswered();
}

std::vector<int> Engine::waits_of(const Chunk& chunk) {
  std::set<int> partials, sums;
  for (int g = 0; g < static_cast<int>(chunk.program->groups.size()); ++g) {
    const LocalGroup& local = chunk.program->groups[g];
    for (int shard = 0; shard < local.size(); ++shard) {
      if (chunk.shard(g, shard).range.is_empty()) continue;
      add_missing(chunk, g, shard, &partials);
      const int from = local.routes[shard].sum_from;
      if (from != ShardRoute::kOwner) sums.insert(local.group.members[from]);
    }
    for (const int node : local.group.members) {
      const Flow* const flow = chunk.generation->flow(node, local.level);
      if (flow != nullptr && flow->lacks_credits()) partials.insert(node);
    }
  }
  const std::set<int>& nodes = partials.empty() ? sums : partials;
  return {nodes.begin(), nodes.end()};
}

}  // namespace riffle
