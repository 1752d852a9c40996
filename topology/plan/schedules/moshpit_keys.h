// Moshpit's key protocol: peers with equal keys meet, and each peer's place in the group becomes
// the newest digit of its key, so that those who just met do not meet again for d - 1 rounds. On a
// full grid that is the grid itself; with holes, or after a failed round, it degrades smoothly.
//
// Pure and deterministic. A key has d - 1 digits in base `side`.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/plan/schedules/cycle.h"

namespace riffle {

class MoshpitKeys {
 public:
  // Precondition: side >= 2, dimensions >= 1, side ^ dimensions >= nodes.
  MoshpitKeys(int nodes, int side, int dimensions, std::uint64_t seed);

  // The groups of the coming round among the nodes that are `alive` (empty: all), each in the order
  // that gives its members their new digits. None has more than `side` members.
  NodeGroups groups(const std::vector<bool>& alive = {}) const;
  // The round is over. Members of a group whose round failed (`done` false) keep their keys, as
  // they keep their values: a contribution is averaged and replaced, or kept.
  void advance(const NodeGroups& groups, const std::vector<bool>& done);
  void advance(const NodeGroups& groups) {
    advance(groups, std::vector<bool>(groups.size(), true));
  }

  std::uint64_t key(int node) const { return keys_[static_cast<std::size_t>(node)]; }

 private:
  std::uint64_t side_;
  std::uint64_t top_;  // the place value of the newest digit's left neighbour: side ^ (d - 1)
  std::uint64_t seed_;
  std::uint64_t round_ = 0;
  std::vector<std::uint64_t> keys_;
};

}  // namespace riffle
