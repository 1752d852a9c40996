// Program: one node's part in a group plan, compiled once when the plan is installed.
//
// A plan lists all groups of all nodes; a node only runs those it is a member of. Level k works on
// what level k-1 left, so a node's groups form a forest: the parent of a group is the nearest
// earlier group whose shard, owned by this node, contains the group's span; groups without one hang
// below the root, the whole buffer. The engine walks the forest downwards to reduce and upwards to
// gather.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "topology/base/status.h"
#include "topology/plan/group_plan.h"

namespace riffle {

inline constexpr int kRoot = -1;

// The way of one shard through a group, as far as it leads past this node (pattern.h). Members by
// their place in the group.
struct ShardRoute {
  int partial_to = kOwner;         // where our partial sum goes
  std::vector<int> partials_from;  // whose partial sums we add to ours first, in rising order
  int sum_from = kOwner;           // who sends us the sum
  std::vector<int> sum_to;         // whom we send it to
  std::size_t own_place = 0;       // of our own partial sum among those that are added

  static constexpr int kOwner = -1;

  std::size_t operands() const { return partials_from.size() + 1; }
  // The index of a member in partials_from; its size if we get nothing from it.
  std::size_t child(int member) const {
    const auto at = std::lower_bound(partials_from.begin(), partials_from.end(), member);
    const bool is_there = at != partials_from.end() && *at == member;
    return is_there ? at - partials_from.begin() : partials_from.size();
  }
  // The place of partials_from[child] among those that are added.
  std::size_t place_of(std::size_t child) const { return child + (child >= own_place); }
};

struct LocalGroup {
  Group group;
  int level = 0;
  int index = 0;                      // position within the level: the group's name on the wire
  int me = 0;                         // our place among the members
  int parent = kRoot;                 // index in Program::groups
  std::vector<int> children;          // likewise
  std::vector<ShardRoute> routes;     // by shard
  bool sums_in_member_order = false;  // GroupExchange's

  int size() const { return static_cast<int>(group.members.size()); }
};

struct Program {
  std::vector<LocalGroup> groups;  // by (level, index)
  std::vector<int> root_children;
  int levels = 0;  // the last one's number plus 1

  // The local group with this wire name, or -1.
  int find(int level, int index) const;
};

// A group in which this node is member `me`, outside of any plan.
LocalGroup local_group(const Group& group, int me);

// `plan` must have passed validate(). Its levels are numbered from `first_level` on. Fails if a
// group's span is not inside one shard of its parent, a shape that is valid on paper but that no
// planner of ours makes.
Result<Program> compile(const GroupPlan& plan, int rank, int first_level = 0);

// A frame's payload is one fragment: a shard cut at the multiples of the fragment size, counted
// from the chunk's start, so that fragments of all levels nest. Bound of fragments per shard:
std::size_t max_fragments(Share begin, Share end, std::size_t chunk_bytes,
                          std::size_t fragment_bytes);
// ... and of the bytes of one of them.
std::size_t max_fragment_bytes(Share begin, Share end, std::size_t chunk_bytes,
                               std::size_t fragment_bytes);

// Shard limits are multiples of this many bytes (a cache line), except the end of the buffer.
inline constexpr std::size_t kGrainBytes = 64;
// Small chunks take as long as their messages are many, so their shards are few: of 4 KiB where the
// plan's shards are not smaller anyway.
inline constexpr std::size_t kSmallChunk = 32 << 10, kSmallGrain = 4 << 10;

// One plan's programs, by lane.
struct Lanes {
  std::vector<Program> programs;
  // In any lane of any node: who owns an element also decides in which order it is summed.
  bool sums_depend_on_owner = false;
  std::size_t small_grain = kGrainBytes;

  // What limits of shards are multiples of, in bytes, in a chunk of this many.
  std::size_t grain_bytes(std::size_t chunk) const {
    return chunk <= kSmallChunk ? small_grain : kGrainBytes;
  }
};

}  // namespace riffle
