// Survey: the course of one active probe of the network. It says which round comes next, takes in
// what was counted, and concludes rates and racks.
//
//   1. pairs   up to kDenseNodes nodes: all ordered pairs, N-1 rounds (a second time for few nodes
//              if anything was held back, and the racks are not sure); beyond: 5 log2 N rounds,
//              never all pairs
//   2. racks   if flows were held back by what neither end explains: rounds across and within the
//              racks that the pairs make suspect, which confirm them or not and measure their
//              uplinks; once more if other racks are suspect then. So are racks that a hint
//              (rack_hints.h) names
//   3. hubs    racks whose uplinks seem to be the fastest: each against all others at once, for
//              what it exchanges with one of them is never more than that one's uplink can do
//   4. fans    nodes that met no partner able to do clearly more, or all if flows were held back:
//              one against three at once, and against more where that was still not enough, or was
//              a surprise. Nothing else shows what a node can do whose rack has slower ones only,
//              so fans come before 1 to 3 are complete where the time does not suffice for all
//   5. doubts  as long as flows were held back and no racks that were put to the test explain it:
//              more rounds, up to kMostDoubts times. Nothing is missing if the time is up then
//
// Every node takes part in O(log N) rounds beyond kDenseNodes. Pure and deterministic: the same
// samples give the same rounds. Who runs the rounds decides how long each lasts.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "topology/probe/rack_search.h"

namespace riffle::probe {

struct Findings {
  NodeRates rates;  // payload
  Racks racks;
  // One way, median of the pairs' shortest, with several racks of pairs in different ones; 0:
  // unknown.
  std::int64_t latency_us = 0;
  // ... of pairs within a rack, where that is far less; 0: it is not, or unknown.
  std::int64_t rack_latency_us = 0;
  int rounds = 0;
};

class Survey {
 public:
  // `known`: of the racks; where they are beyond doubt only rates are measured.
  Survey(int nodes, std::uint64_t seed, KnownRacks known = {});

  // The next round; none: enough is known. add() must follow before the next call. `rounds_left`:
  // there is time for so many, about.
  std::optional<Round> next(int rounds_left = std::numeric_limits<int>::max());
  void add(Observed observed);

  // All that belongs to a survey took place; further rounds only make what is known surer.
  bool is_enough() const { return stage_ >= Stage::kDoubts; }

  // All rounds that took place, in their order.
  const std::vector<Observed>& observed() const { return all_; }

  // What is known so far; worked out anew only after add().
  const Findings& findings();

 private:
  enum class Stage { kPairs, kAgain, kRacks, kOtherRacks, kHubs, kFans, kWideFans, kDoubts, kOver };

  void plan_pairs();
  void advance();
  bool must_begin_fans(int rounds_left);
  void plan_racks();
  void plan_hubs();
  void plan_fans();
  void plan_wide_fans();
  std::vector<int> spokes_of(int hub);
  void plan_doubts();
  bool anything_held_back() const;
  bool are_racks_sure();
  std::vector<RackHint> hints() const;
  void measure_latency();

  int nodes_;
  std::mt19937_64 random_;
  KnownRacks known_;
  std::vector<int> tested_racks_;
  Stage stage_ = Stage::kPairs;
  std::deque<Round> queue_;
  std::vector<Observed> all_;
  std::size_t fans_begin_ = 0;  // in all_
  int doubts_ = 0;              // how often they led to more rounds
  Findings findings_;
  bool findings_are_current_ = false;
};

}  // namespace riffle::probe
