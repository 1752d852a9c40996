// LiveRates: what node 0 believes of the network while the job runs: the fabric that connect
// decided on, corrected by what the nodes report about their own traffic (passive.h), replanning
// interval by replanning interval.
//
// A rate goes down (or up) to what was measured while the link was the limit, if two replanning
// intervals in a row agree or one is beyond doubt. A link that was not the limit has a rate of at
// least what it carried; from there its estimate goes back towards the rate it had at connect,
// slowly, or fast while it carries all it is believed to and has been seen to carry more, because
// nothing else would ever find out that a neighbour has left: if that is too much, the link becomes
// the limit and is measured. Rates
// within 8 % of each other, or of connect's, count as equal, so that an even network gives exactly
// the even plan again.
//
// Where others move much over the same NICs their bytes are known (passive.h), but not to the
// moment: rates come out up to 1.7 times too high or too low. There, what is believed changes only
// if it is wrong by more than a factor of two.
//
// An uplink has what its nodes sent to other racks together, if most of them say that it held them
// up. (The way down of a rack is not told apart from the ways up of the others; it keeps its rate.)
//
// Where connect only knew the nominal speed of the cards, it is the ratios that count: the best
// link relative to its nominal rate says what nominal means.
//
// Pure, deterministic; one owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/probe/passive.h"

namespace riffle::probe {

// Rates closer than this (relative) count as equal.
inline constexpr double kSameRate = 0.08;

class LiveRates {
 public:
  // `is_nominal`: no file or measurement gave the base's rates.
  LiveRates(Fabric base, bool is_nominal);

  // One replanning interval's reports, in rank order. `is_too_low`: all-reduces took clearly less
  // than these rates allow, so some of them have risen.
  void update(const std::vector<PassiveReport>& reports, bool is_too_low = false);

  // The base with the live rates of all nodes and uplinks, near-equal ones made equal.
  Fabric fabric() const;
  const Fabric& base() const { return base_; }

 private:
  struct Estimate {
    double factor = 1;    // of the base's rate
    double pending = 0;   // measured once, waits for a second replanning interval; 0: nothing
    double measured = 0;  // the most it ever had as the limit
    double carried = 0;   // ... and the most it ever carried
    double limit = 0;     // what it last had as the limit
  };
  static void learn(Estimate* e, const PassiveRate& rate, std::int64_t active_ms,
                    std::int64_t base_kbps, bool is_rough);
  void recover(Estimate* e, const PassiveRate& rate, std::int64_t active_ms, std::int64_t base_kbps,
               bool is_too_low) const;
  PassiveRate uplink(int rack, const std::vector<PassiveReport>& reports, std::int64_t* active_ms,
                     bool* is_rough) const;
  static bool was_limit(const PassiveRate& rate, std::int64_t active_ms);

  Fabric base_;
  bool is_nominal_;
  double ceiling_ = 1;              // what "the base's rate" means, as a factor
  std::vector<Estimate> out_, in_;  // by rank
  std::vector<Estimate> up_;        // by rack
};

// What changed from one fabric to the other, human-readable: "node 3 (h3) now sends 98 Mbit/s, was
// 400"; the largest change first, at most two of them. Empty if nothing did.
std::string describe_change(const Fabric& from, const Fabric& to);

}  // namespace riffle::probe
