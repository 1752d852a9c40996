// What the path between two nodes without rates carries: the plugin's NET beside a bare send/recv
// loop (riffle_net_bench) and beside iperf3. It shows what our code costs, not what a network
// allows.
#pragma once

#include <string>

#include "bench/peers/peer.h"

namespace riffle::bench {

// Human-readable lines. Needs a cluster; a program that is missing is said to be.
std::string path_speed(const Site& site);

}  // namespace riffle::bench
