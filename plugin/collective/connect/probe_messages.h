// What nodes tell each other while they probe the network. Encoded little-endian in records of
// fixed size; decoding checks every count against the length and every number against its range.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/base/status.h"
#include "topology/probe/rounds.h"

namespace riffle {

// Node 0 to all, along the tree. A subtree hears of its own flows only.
struct ProbeOrder {
  enum class Kind : std::uint32_t {
    kTakeTurn,  // open all links and take your turn at this machine's network
    kGiveBack,  // give the turn back
    kRound,     // run these flows now
  };
  std::uint32_t number = 0;  // of the order, from 1
  Kind kind = Kind::kTakeTurn;
  std::uint32_t duration_us = 0;
  std::uint32_t most_bytes = 0;  // per flow
  std::vector<probe::Flow> flows;
};

// A subtree to its parent: the round is over here, and this is what arrived. Receivers tell rates,
// senders round trips, either of them hops; node 0 puts them together.
struct ProbeReport {
  struct Entry {
    probe::Flow flow;
    probe::Sample sample;
    std::uint64_t bytes = 0;
  };
  std::uint32_t number = 0;
  bool is_busy = false;  // another communicator has the turn at one of the subtree's machines
  std::vector<Entry> entries;
};

std::vector<std::uint8_t> encode(const ProbeOrder& order);
std::vector<std::uint8_t> encode(const ProbeReport& report);
// `nodes`: flows must stay among them.
Result<ProbeOrder> decode_probe_order(const std::vector<std::uint8_t>& bytes, int nodes);
Result<ProbeReport> decode_probe_report(const std::vector<std::uint8_t>& bytes, int nodes);

}  // namespace riffle
