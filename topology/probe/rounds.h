// What an active probe is made of: rounds of concurrent flows, and what their receivers counted.
//
// A round is a set of flows that run at the same time for some ten milliseconds while nothing else
// does. In a round of pairs every node sends at most one flow and receives at most one, so that
// probes do not share a network interface and whatever keeps a flow below the rate of both its ends
// must lie between them. All functions are pure; the same arguments give the same rounds.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace riffle::probe {

struct Flow {
  int from = 0, to = 0;
  bool operator==(const Flow&) const = default;
};

struct Round {
  std::vector<Flow> flows;
  bool operator==(const Round&) const = default;
};

// What became of one flow.
struct Sample {
  std::int64_t kbps = 0;  // payload at the receiver once the flow ran evenly; 0: too little came
  // Within the time that is the same for all flows of the round, whether this one ran or not: what
  // flows carried together is the sum of these.
  std::int64_t together_kbps = 0;
  bool is_steady = false;   // both halves of what was counted agree
  std::int64_t rtt_us = 0;  // of a small message before the flow; 0: unknown
  int hops = -1;            // routers between the two nodes; -1: unknown
};

// A round that took place; samples[i] belongs to round.flows[i].
struct Observed {
  Round round;
  std::vector<Sample> samples;
};

// In a round of pairs every node has at most one flow in either direction.
bool is_pairs(const Round& round, int nodes);

// Rounds of pairs that together hold every ordered pair exactly once: N-1 rounds of N flows. Node
// x sends to the node k places on in a shuffled circle, so that neighbours by number do not meet
// more or less often than others in the same round.
std::vector<Round> all_pairs(int nodes, std::mt19937_64& random);

// One round: every node sends to one node and receives from one, at random.
Round random_pairs(int nodes, std::mt19937_64& random);

// One round for ranks that were handed out rack by rack: a random half of the nodes sends to the
// node `distance` ranks on, the others to each other at random as background load.
Round neighbours(int nodes, int distance, std::mt19937_64& random);

// One round of pairs in which as many flows as possible leave their rack, to measure uplinks.
Round across_racks(const std::vector<int>& rack_of, std::mt19937_64& random);

// One round of pairs in which only flows to and from one rack leave theirs, to as many others as
// possible: what its uplink can do though each of the others' is slower.
Round around_rack(const std::vector<int>& rack_of, int rack, std::mt19937_64& random);

// One round of pairs in which no flow leaves its rack, to measure nodes.
Round within_racks(const std::vector<int>& rack_of, std::mt19937_64& random);

// `hub` exchanges flows with all `spokes` at once, in both directions: what the hub can do though
// each of its partners is slower.
Round fan(int hub, const std::vector<int>& spokes);

// Groups of about `group` nodes, of one rack as far as possible; round k has the k-th member of
// every group as hub of the others. Every node is a hub once.
std::vector<Round> fans(const std::vector<int>& rack_of, int group, std::mt19937_64& random);

// Fisher-Yates with plain remainders: the same order on every platform.
void shuffle(std::vector<int>* list, std::mt19937_64& random);

}  // namespace riffle::probe
