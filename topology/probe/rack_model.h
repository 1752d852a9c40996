// The network as nodes behind shared uplinks, and how well it explains what was seen.
//
// A flow of a round of pairs is limited by its two ends and, if it leaves its rack, by the uplink
// it leaves through and the one it arrives by. Flows share an uplink max-min fairly. Given who
// stands in which rack, the uplinks' rates follow from the rounds themselves (what all flows
// through an uplink carried together at most), the model predicts every flow, and the negative
// log-likelihood of what was seen under it (log-normal noise, far wider for shared links, because
// TCP is not fair over short times; long tails cut) plus a price per parameter says how good the
// racks are. Less is better. Pure.
#pragma once

#include <vector>

#include "topology/probe/node_rates.h"
#include "topology/probe/rounds.h"

namespace riffle::probe {

struct Uplink {
  double up_kbps = 0;    // payload; 0: never the limit
  double down_kbps = 0;  // likewise
};

// Flow by flow what both ends could have carried and what was seen. Rounds in which a node has
// several flows in one direction are left out.
class RackModel {
 public:
  static constexpr double kMostNats = 8;  // one flow cannot say more

  RackModel(int nodes, const NodeRates& rates, const std::vector<Observed>& all);

  // rack_of: 0..racks-1 per node, none empty.
  double cost(const std::vector<int>& rack_of, int racks) const;
  // What each can do, from the rounds in which it was full.
  std::vector<Uplink> uplinks(const std::vector<int>& rack_of, int racks) const;
  // All nodes; those whose flows the model predicts worst come first.
  std::vector<int> worst_first(const std::vector<int>& rack_of, int racks) const;

  // Share of flows that stayed clearly below both their ends.
  double held_back() const { return held_back_; }
  std::size_t sightings() const { return sightings_; }
  int nodes() const { return nodes_; }

  struct Sighting {
    int from, to;
    double cap, seen, together;  // kbit/s; min of both ends; what arrived; ... beside the others
    bool is_held_back;
  };
  struct PairRound {
    std::vector<Sighting> flows;  // ascending cap
    double held_back = 0;         // share
  };
  const std::vector<PairRound>& rounds() const { return rounds_; }

 private:
  struct Shares;  // of one round, scratch
  std::vector<Uplink> most_carried(const std::vector<int>& rack_of, int racks) const;
  void predict(const PairRound& round, const std::vector<int>& rack_of,
               const std::vector<Uplink>& uplinks, Shares* shares) const;
  template <class Visit>  // visit(round, its shares)
  void replay(const std::vector<int>& rack_of, int racks, Visit visit) const;
  double price(int racks) const;

  int nodes_;
  std::vector<PairRound> rounds_;
  std::size_t sightings_ = 0;
  double held_back_ = 0;
};

}  // namespace riffle::probe
