// What peers are told that know the racks: an emulated profile's, as an operator would write them.
#pragma once

#include <vector>

#include "bench/peers/peer.h"

namespace riffle::bench {

// Nodes by rack; racks of one pod are neighbours. Without a cluster: one rack of all.
std::vector<std::vector<int>> racks_of(const Site& site);
std::vector<std::vector<int>> racks_of(const cluster::Profile& profile);

std::vector<int> nodes_as_they_lie(int nodes);  // 0, 1, ...
// Nodes in the best order for a ring: it enters and leaves every rack and pod once.
std::vector<int> rack_order(const std::vector<std::vector<int>>& racks);

}  // namespace riffle::bench
