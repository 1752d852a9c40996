#include "lab/nccl_host/work/tree.h"

namespace riffle::host {
namespace {

// A binary tree over 0 .. ranks-1 in which leaves are the odd ranks: the lowest set bit of a rank
// is its height.
TreePlace binary_tree(int ranks, int rank) {
  int bit = 1;
  while (bit < ranks && (bit & rank) == 0) bit <<= 1;
  TreePlace place;
  if (rank == 0) {
    if (ranks > 1) place.down.push_back(bit >> 1);
    return place;
  }
  place.up = (rank ^ bit) | (bit << 1);
  if (place.up >= ranks) place.up = rank ^ bit;
  int low = bit >> 1;
  if (low == 0) return place;
  place.down.push_back(rank - low);
  int second = rank + low;
  while (second >= ranks && low != 0) {
    second = rank + low;
    low >>= 1;
  }
  if (second < ranks) place.down.push_back(second);
  return place;
}

}  // namespace

TreePlace tree_place(int ranks, int rank, int tree) {
  if (tree == 0) return binary_tree(ranks, rank);
  // The second tree is the first one shifted (odd) or mirrored (even).
  const bool shift = ranks % 2 == 1;
  TreePlace place = binary_tree(ranks, shift ? (rank - 1 + ranks) % ranks : ranks - 1 - rank);
  auto back = [&](int r) { return shift ? (r + 1) % ranks : ranks - 1 - r; };
  if (place.up >= 0) place.up = back(place.up);
  for (int& d : place.down) d = back(d);
  return place;
}

}  // namespace riffle::host
