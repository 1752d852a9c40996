#include "bench/soak/board.h"

#include <cstring>

namespace riffle::bench::soak {

void find(Board& board, int node, const std::string& what) {
  Board::Node& own = board.nodes[node];
  if (own.has_finding.exchange(true)) return;
  std::strncpy(own.finding, what.c_str(), sizeof own.finding - 1);
}

}  // namespace riffle::bench::soak
