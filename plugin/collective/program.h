// Program: one node's part in a group plan, compiled once when the plan is installed.
//
// A plan lists all groups of all nodes; a node only runs those it is a member of. Level k works on
// what level k-1 left, so a node's groups form a forest: the parent of a group is the nearest
// earlier group whose shard, owned by this node, contains the group's span; groups without one hang
// below the root, the whole buffer. The engine walks the forest downwards to reduce and upwards to
// gather.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "topology/base/status.h"
#include "topology/plan/group_plan.h"

namespace riffle {

inline constexpr int kRoot = -1;

struct LocalGroup {
  Group group;
  int level = 0;
  int index = 0;              // position within the level: the group's name on the wire
  int me = 0;                 // our place among the members
  int parent = kRoot;         // index in Program::groups
  std::vector<int> children;  // likewise

  int size() const { return static_cast<int>(group.members.size()); }
};

struct Program {
  std::vector<LocalGroup> groups;  // by (level, index)
  std::vector<int> root_children;
  int levels = 0;

  // The local group with this wire name, or -1.
  int find(int level, int index) const;
};

// `plan` must have passed validate(). Fails if a group's span is not inside one shard of its
// parent, a shape that is valid on paper but that no planner of ours makes.
Result<Program> compile(const GroupPlan& plan, int rank);

// A frame's payload is one fragment: a shard cut at the multiples of the piece size, counted from
// the chunk's start ("cells"), so that fragments of all levels nest. Bound of fragments per shard:
std::size_t max_fragments(Share begin, Share end, std::size_t chunk_bytes, std::size_t piece_bytes);
// ... and of the bytes of one of them.
std::size_t max_fragment_bytes(Share begin, Share end, std::size_t chunk_bytes,
                               std::size_t piece_bytes);

// Shard limits are multiples of this many bytes (a cache line), except the end of the buffer.
inline constexpr std::size_t kGrainBytes = 64;

}  // namespace riffle
