#include "topology/probe/pair_rates.h"

#include <algorithm>

namespace riffle::probe {
namespace {

// No node has several flows in one direction.
bool is_of_pairs(int nodes, const Round& round) {
  std::vector<bool> sends(static_cast<std::size_t>(nodes)), receives(sends);
  for (const Flow& f : round.flows) {
    const auto from = static_cast<std::size_t>(f.from), to = static_cast<std::size_t>(f.to);
    if (sends[from] || receives[to]) return false;
    sends[from] = receives[to] = true;
  }
  return true;
}

}  // namespace

std::vector<std::vector<std::int64_t>> pair_rates(int nodes, const std::vector<Observed>& all) {
  const auto n = static_cast<std::size_t>(nodes);
  std::vector<std::vector<std::int64_t>> most(n, std::vector<std::int64_t>(n, 0));
  for (const Observed& o : all) {
    if (!is_of_pairs(nodes, o.round)) continue;
    for (std::size_t i = 0; i < o.round.flows.size(); ++i) {
      const Flow& f = o.round.flows[i];
      std::int64_t& rate = most[static_cast<std::size_t>(f.from)][static_cast<std::size_t>(f.to)];
      rate = std::max(rate, o.samples[i].kbps);
    }
  }
  return most;
}

}  // namespace riffle::probe
