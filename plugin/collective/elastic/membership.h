// Membership: which nodes go on together after others were lost. Pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace riffle {

// What a set of nodes agreed on. Terms are numbers that only grow; the one of connect is 0.
struct Membership {
  std::uint64_t term = 0;
  std::vector<int> nodes;  // ascending

  bool has(int node) const;
  int place_of(int node) const;  // among the nodes, -1: not one of them
  bool operator==(const Membership&) const = default;
};

// May `side` (ascending) go on from `last`? It may if it holds more than half of it, or exactly
// half with its lowest-numbered node, so that of two sides at most one may.
bool holds_quorum(const std::vector<int>& last, const std::vector<int>& side);

// A subset of `nodes` in which all reach each other, made by leaving out the node that most of the
// others miss (it may be dead, and have told what it reaches before it died); of equal ones the one
// that misses more, then the higher number. Not always the largest one there is.
std::vector<int> mutual(std::vector<int> nodes, const std::function<bool(int, int)>& reaches);

}  // namespace riffle
