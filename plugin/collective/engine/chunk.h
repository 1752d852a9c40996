// Chunk: the unit the engine runs, a contiguous part of one operation with its own sequence number
// and lane. All memory is sized when its plan is taken (generation.h); running a chunk allocates
// nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugin/collective/engine/operation.h"
#include "plugin/collective/engine/program.h"
#include "plugin/collective/engine/range.h"

namespace riffle {

// A shard in elements, and its fragments: what is left of it when the chunk is cut every
// `fragment_elements` elements.
struct Shard {
  Range range;
  std::uint64_t fragment_elements = 1;

  std::uint64_t first_cut() const { return range.begin / fragment_elements; }
  int fragments() const {
    return range.is_empty()
               ? 0
               : static_cast<int>((range.end - 1) / fragment_elements - first_cut() + 1);
  }
  Range fragment(int i) const {
    const std::uint64_t begin = (first_cut() + i) * fragment_elements;
    return intersect(range, {begin, begin + fragment_elements});
  }
  int fragment_at(std::uint64_t element) const {
    return static_cast<int>(element / fragment_elements - first_cut());
  }
};

// The state of one local group within one running chunk.
struct GroupRun {
  std::vector<std::uint64_t> cuts;       // shard limits in elements, members + 1 values
  std::vector<std::uint64_t> not_final;  // per own fragment: elements whose sum is not complete
  // Of the fragments at which this node adds partial sums: how many contributions are missing, and
  // where those that are here wait, in the order in which they are added (ShardRoute).
  std::vector<std::int32_t> missing;
  std::vector<const void*> waiting;
  // Of all fragments of the group's span: the final sum comes from another node, or has come.
  std::vector<bool> final_comes;
  // By shard: indices of its first fragment's entries.
  std::vector<std::int32_t> first_fragment;
  std::vector<std::size_t> first_waiting;
};

class Generation;

struct Chunk {
  bool active = false;
  bool is_traced = false;
  int index = 0;  // which of the engine's chunks this is
  std::uint64_t seq = 0;
  Operation* operation = nullptr;
  Generation* generation = nullptr;
  const Lanes* lanes = nullptr;  // that its program is one of; null in a relaxed step
  const Program* program = nullptr;
  std::uint16_t step_class = 0;     // on the wire: 0 for the exact lanes, else 1 + the relaxed step
  const std::byte* send = nullptr;  // element 0 of the chunk
  std::byte* recv = nullptr;
  std::uint64_t count = 0;              // elements, of which there may be none
  std::uint64_t fragment_elements = 1;  // of a whole fragment
  std::size_t element_bytes = 1;
  std::uint64_t not_final = 0;  // elements
  int sends = 0;                // frames not yet handed to the network
  std::size_t place_bytes = 0;  // in the engine's chunk window
  std::span<GroupRun> runs;     // the generation's; parallel to program->groups

  Shard shard(int group, int member) const {
    const GroupRun& run = runs[group];
    return {{run.cuts[member], run.cuts[member + 1]}, fragment_elements};
  }
  Shard own_shard(int group) const { return shard(group, program->groups[group].me); }
  Shard whole() const { return {{0, count}, fragment_elements}; }

  std::byte* at_recv(std::uint64_t element) const { return recv + element * element_bytes; }
  const std::byte* at_send(std::uint64_t element) const { return send + element * element_bytes; }
  // Our own partial sum of a range before the group runs: the user's data at the top, else what the
  // parent group left in the receive buffer.
  const std::byte* own_partial(int group, std::uint64_t element) const {
    return program->groups[group].parent == kRoot ? at_send(element) : at_recv(element);
  }
  bool carries_partials() const { return operation->collective != Collective::kAllGather; }
  bool gathers() const { return operation->collective != Collective::kReduceScatter; }
};

// The member whose shard holds the element; members with empty shards are never the answer.
inline int member_at(const GroupRun& run, std::uint64_t element) {
  const auto after = std::upper_bound(run.cuts.begin(), run.cuts.end(), element);
  return static_cast<int>(after - run.cuts.begin()) - 1;
}

}  // namespace riffle
