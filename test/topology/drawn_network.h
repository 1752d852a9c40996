// Networks that no test was written around, and how flows behave on them: drawn by a seed.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "test/topology/probe_network.h"
#include "topology/fabric/fabric.h"
#include "topology/probe/rounds.h"

namespace riffle {

inline constexpr std::int64_t kDrawnKbps = 400'000;
// Flows that share links unevenly, and now and then one that starts slowly.
inline constexpr ProbeNoise kUnevenTcp{.sigma = 0.04, .unfairness = 0.7, .outliers = 0.06};

// 1 to 5 racks of uneven sizes, their nodes anywhere, uplinks of 15 to 90 % of what their nodes can
// send, nodes of one rate or of up to four.
inline Fabric drawn_network(std::mt19937_64& random, int nodes) {
  const auto part = [&] { return static_cast<double>(random() % 1000) / 1000; };
  const int racks = std::min(1 + static_cast<int>(random() % 5), nodes / 2);
  std::vector<int> rack_of;
  for (int n = 0; n < nodes; ++n) {
    rack_of.push_back(n < 2 * racks ? n % racks : static_cast<int>(random() % racks));
  }
  probe::shuffle(&rack_of, random);
  const std::uint64_t classes = random() % 2 == 0 ? 1 : 1 + random() % 4;
  Fabric f;
  f.latency_us = 50;
  std::vector<std::int64_t> inside(racks, 0);
  for (int n = 0; n < nodes; ++n) {
    std::int64_t rate = kDrawnKbps - kDrawnKbps / 5 * static_cast<std::int64_t>(random() % classes);
    if (classes > 1 && random() % 6 == 0) rate = kDrawnKbps / 4;
    f.nodes.push_back({"n" + std::to_string(n), rate, rate, rack_of[n]});
    inside[rack_of[n]] += rate;
  }
  for (int r = 0; r < racks; ++r) {
    const auto uplink = static_cast<std::int64_t>((0.15 + 0.75 * part()) * inside[r]);
    f.racks.push_back({"r" + std::to_string(r), racks > 1 ? uplink : 0, racks > 1 ? uplink : 0});
  }
  return f;
}

}  // namespace riffle
