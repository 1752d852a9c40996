// NCCL's two binary trees (graph/trees.cc; Sanders, Speck, Traeff 2009): a leaf of one is an inner
// node of the other, so that all links carry data both ways.
#pragma once

#include <vector>

namespace riffle::host {

struct TreePlace {
  int up = -1;            // -1: root
  std::vector<int> down;  // at most two
};

// tree 0 or 1; channels alternate between them.
TreePlace tree_place(int ranks, int rank, int tree);

}  // namespace riffle::host
