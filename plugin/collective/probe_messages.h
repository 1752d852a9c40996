// What nodes tell each other while they probe the network. Encoded little-endian in records of
// fixed size; decoding checks every count against the length and every number against its range.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/base/status.h"
#include "topology/probe/rounds.h"

namespace riffle {

// Node 0 to all, along the tree: run these flows now. A subtree hears of its own flows only.
struct ProbeOrder {
  std::uint32_t number = 0;       // of the round, from 1
  std::uint32_t duration_us = 0;  // 0: no round, but open all links
  std::uint32_t most_bytes = 0;   // per flow
  std::vector<probe::Flow> flows;
  bool opens_links() const { return duration_us == 0; }
};

// A subtree to its parent: the round is over here, and this is what arrived. Receivers tell rates,
// senders round trips; node 0 puts them together.
struct ProbeReport {
  struct Entry {
    probe::Flow flow;
    probe::Sample sample;
    std::uint64_t bytes = 0;
  };
  std::uint32_t number = 0;
  std::vector<Entry> entries;
};

std::vector<std::uint8_t> encode(const ProbeOrder& order);
std::vector<std::uint8_t> encode(const ProbeReport& report);
// `nodes`: flows must stay among them.
Result<ProbeOrder> decode_probe_order(const std::vector<std::uint8_t>& bytes, int nodes);
Result<ProbeReport> decode_probe_report(const std::vector<std::uint8_t>& bytes, int nodes);

}  // namespace riffle
