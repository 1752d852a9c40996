#include "plugin/collective/engine/program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plugin/kernels/types.h"

namespace riffle {
namespace {

// What the ends of a shard may be off by: a line, or an element that is no part of one.
constexpr std::uint64_t kWidestGrain = std::max(kGrainBytes, kFloat8BlockBytes);

Share own_begin(const LocalGroup& g) { return g.group.cuts[g.me]; }
Share own_end(const LocalGroup& g) { return g.group.cuts[g.me + 1]; }

// The latest earlier group whose own shard overlaps the span of `g`.
int parent_of(const std::vector<LocalGroup>& groups, const LocalGroup& g) {
  for (int i = static_cast<int>(groups.size()) - 1; i >= 0; --i) {
    if (groups[i].level >= g.level) continue;
    if (own_begin(groups[i]) < g.group.end() && g.group.begin() < own_end(groups[i])) return i;
  }
  return kRoot;
}

std::uint64_t shard_bytes_bound(Share begin, Share end, std::size_t chunk_bytes) {
  // Chunks are far below 2^34 bytes, so the product fits.
  const std::uint64_t exact = std::uint64_t{end - begin} * chunk_bytes / kShareUnits;
  return std::min<std::uint64_t>(chunk_bytes, exact + 2 * kWidestGrain);
}

ShardRoute route_of(const GroupExchange& exchange, int size, int shard, int me) {
  ShardRoute route;
  route.partials_from = exchange.partials_from(size, shard, me);
  route.sum_to = exchange.sum_to(size, shard, me);
  if (shard != me) {
    route.partial_to = exchange.partial_to(size, shard, me);
    route.sum_from = exchange.sum_from(size, shard, me);
  }
  route.own_place = route.partials_from.size();
  if (exchange.sums_in_member_order()) {
    const auto& from = route.partials_from;
    route.own_place = std::lower_bound(from.begin(), from.end(), me) - from.begin();
  }
  return route;
}

}  // namespace

LocalGroup local_group(const Group& group, int me) {
  LocalGroup local;
  local.group = group;
  local.me = me;
  const GroupExchange& exchange = exchange_of(group.pattern);
  local.sums_in_member_order = exchange.sums_in_member_order();
  for (int shard = 0; shard < local.size(); ++shard) {
    local.routes.push_back(route_of(exchange, local.size(), shard, me));
  }
  return local;
}

int Program::find(int level, int index) const {
  const auto at = std::lower_bound(groups.begin(), groups.end(), std::pair(level, index),
                                   [](const LocalGroup& g, const std::pair<int, int>& key) {
                                     return std::pair(g.level, g.index) < key;
                                   });
  if (at == groups.end() || at->level != level || at->index != index) return -1;
  return static_cast<int>(at - groups.begin());
}

Result<Program> compile(const GroupPlan& plan, int rank, int first_level) {
  Program program;
  program.levels = first_level + static_cast<int>(plan.levels.size());
  for (int level = first_level; level < program.levels; ++level) {
    const auto& groups = plan.levels[level - first_level].groups;
    for (int index = 0; index < static_cast<int>(groups.size()); ++index) {
      const Group& group = groups[index];
      const auto me = std::find(group.members.begin(), group.members.end(), rank);
      if (me == group.members.end() || group.begin() == group.end()) continue;
      if (group.members.size() == 1) continue;  // keeps what it has
      LocalGroup local = local_group(group, static_cast<int>(me - group.members.begin()));
      local.level = level;
      local.index = index;
      local.parent = parent_of(program.groups, local);
      const int self = static_cast<int>(program.groups.size());
      if (local.parent == kRoot) {
        program.root_children.push_back(self);
      } else {
        LocalGroup& parent = program.groups[local.parent];
        if (group.begin() < own_begin(parent) || own_end(parent) < group.end()) {
          return invalid_argument("plan: group " + std::to_string(index) + " of level " +
                                  std::to_string(level) + " spans more than one shard of node " +
                                  std::to_string(rank));
        }
        parent.children.push_back(self);
      }
      program.groups.push_back(std::move(local));
    }
  }
  return program;
}

std::size_t max_fragments(Share begin, Share end, std::size_t chunk_bytes,
                          std::size_t fragment_bytes) {
  if (begin == end) return 0;
  // A fragment holds whole elements.
  const std::uint64_t least =
      fragment_bytes - std::min<std::uint64_t>(fragment_bytes / 2, kWidestGrain);
  return shard_bytes_bound(begin, end, chunk_bytes) / least + 2;
}

std::size_t max_fragment_bytes(Share begin, Share end, std::size_t chunk_bytes,
                               std::size_t fragment_bytes) {
  return std::min<std::uint64_t>(fragment_bytes, shard_bytes_bound(begin, end, chunk_bytes));
}

}  // namespace riffle
