// What each pair of nodes reached, as a reader looks at them: the raw material of the conclusions.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/probe/rounds.h"

namespace riffle::probe {

// [from][to] in kbit/s of payload: the most that the pair reached in a round of pairs, in which
// every node sends one flow and receives one; 0: never measured so. Pure.
std::vector<std::vector<std::int64_t>> pair_rates(int nodes, const std::vector<Observed>& all);

}  // namespace riffle::probe
