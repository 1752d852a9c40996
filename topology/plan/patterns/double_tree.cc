// The double-tree pattern: each shard goes up a binary tree to its owner and down again. With two
// owners there are two trees, in which a leaf of one is an inner node of the other: a member sends
// its part of either half up, and passes no more than two halves down, so in either phase at most
// the span each way, after about log2 p hops. (With more owners every shard has its own tree.)
//
// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
// and scan", Parallel Computing 35 (2009). The numbering is NCCL's (src/graph/trees.cc): the second
// tree is the first one mirrored where the number of members is even, else shifted by one.
#include <algorithm>
#include <bit>

#include "topology/plan/patterns/pattern.h"

namespace riffle {
namespace {

// A binary tree over the places 0 to size - 1 in which odd places are leaves, and 0 is the root and
// has one child. An inner place x with lowest bit b has one on either side, within b of it.
int parent_of(int place, int size) {
  const int bit = place & -place;
  const int up = (place ^ bit) | (bit << 1);
  return up < size ? up : place ^ bit;
}

std::vector<int> children_of(int place, int size) {
  const int bit =
      place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size))) : place & -place;
  std::vector<int> children;
  if (place > 0 && bit > 1) children.push_back(place - bit / 2);
  int step = bit / 2;
  while (step > 0 && place + step >= size) step /= 2;
  if (step > 0) children.push_back(place + step);
  return children;
}

// The members' places in the tree of a shard.
class Places {
 public:
  Places(int size, int shard)
      : size_(size), shard_(shard), is_mirrored_(size % 2 == 0 && shard % 2 == 1) {}

  int of_member(int member) const {
    return (is_mirrored_ ? shard_ - member + size_ : member - shard_ + size_) % size_;
  }
  int member(int place) const {
    return (is_mirrored_ ? shard_ - place + size_ : shard_ + place) % size_;
  }

 private:
  int size_, shard_;
  bool is_mirrored_;
};

class DoubleTree final : public GroupExchange {
 public:
  const char* name() const override { return "double-tree"; }

  int partial_to(int size, int shard, int member) const override {
    const Places places(size, shard);
    return places.member(parent_of(places.of_member(member), size));
  }

  std::vector<int> partials_from(int size, int shard, int member) const override {
    const Places places(size, shard);
    std::vector<int> children = children_of(places.of_member(member), size);
    for (int& child : children) child = places.member(child);
    std::sort(children.begin(), children.end());
    return children;
  }

  int depth(int size) const override { return std::bit_width(static_cast<unsigned>(size - 1)); }
  // With two owners, as the planner has it.
  int partners(int size) const override { return std::min(size - 1, 2); }
};

}  // namespace

const GroupExchange& double_tree_exchange() {
  static const DoubleTree instance;
  return instance;
}

}  // namespace riffle
