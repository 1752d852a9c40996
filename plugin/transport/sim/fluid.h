// Fluid: the links of a fabric as pipes that share their rates fairly.
//
// A flow is what one node sends to one other; it carries one transmission at a time. All active
// flows share the sender's outgoing and the receiver's incoming rate and, between racks, the
// sender's uplink and the receiver's downlink, max-min fairly (fair_share.h). The rates of the
// Fabric count as payload rates here: a transmission of n bytes alone on links of rate r takes n/r;
// there are no packet headers or acknowledgements, only what the caller adds to n.
//
// Rates are found anew when flows start or stop, but only at multiples of `tick_ns`, and
// completions are seen at multiples of it. A flow with more to send loses nothing by that (its next
// transmission begins at the exact moment); one that falls idle ends up to one tick late. 1 ns is
// exact, a thousandth of a typical transmission costs as little accuracy and much less time.
//
// One thread. Deterministic.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/transport/sim/fair_share.h"
#include "topology/fabric/fabric.h"

namespace riffle::sim {

class Fluid {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  Fluid(const Fabric& fabric, std::uint64_t tick_ns);

  int add_flow(int from, int to);
  // The flow's part of what it shares from the next tick on, beside others'; 1 at the start.
  void set_weight(int flow, int weight, std::uint64_t now_ns);
  // Starts a transmission on an idle flow. It gets its share from the next tick on.
  void begin(int flow, double bytes, std::uint64_t now_ns);
  // Ends whatever the flow transmits, without completing it.
  void drop(int flow, std::uint64_t now_ns);
  bool is_busy(int flow) const { return share_.is_active(flow); }
  // Bytes of the transmission that passed by now; 0 on an idle flow.
  double passed(int flow, std::uint64_t now_ns) const;

  // When there is something to do: call complete() at the first, set_peer_weights() at the second,
  // and if both are due complete() first.
  std::uint64_t completion_ns() const { return finish_at_ns_; }
  std::uint64_t sharing_ns() const { return share_at_ns_; }
  // The flows whose transmission is over, in a fixed order. For each call more() or rest() before
  // anything else; valid until the next complete().
  const std::vector<int>& complete(std::uint64_t now_ns);
  void set_peer_weights(std::uint64_t now_ns);
  // The flow goes on with another transmission, from the moment the last one ended. True if that
  // one is complete by now, too.
  bool more(int flow, double bytes, std::uint64_t now_ns);
  void rest(int flow, std::uint64_t now_ns);

  // Rates in kbit/s from now on; 0 for an uplink or downlink: no limit.
  void set_node(int node, std::int64_t out_kbps, std::int64_t in_kbps, std::uint64_t now_ns);
  void set_rack(int rack, std::int64_t up_kbps, std::int64_t down_kbps, std::uint64_t now_ns);

  // Bytes that passed since the start.
  double out_bytes(int node) const { return bytes_[out(node)]; }
  double in_bytes(int node) const { return bytes_[in(node)]; }
  double up_bytes(int rack) const { return bytes_[up(rack)]; }
  double down_bytes(int rack) const { return bytes_[down(rack)]; }

 private:
  struct Pipe {
    double bytes = 0;      // of the transmission
    double left = 0;       // of it, at since_ns
    double since_ns = 0;   // when `rate` began to hold
    double rate = 0;       // bytes per ns
    double finish_ns = 0;  // at this rate
  };
  int out(int node) const { return 2 * node; }
  int in(int node) const { return 2 * node + 1; }
  int up(int rack) const { return 2 * nodes_ + 2 * rack; }
  int down(int rack) const { return 2 * nodes_ + 2 * rack + 1; }
  void count(int flow, double bytes);
  void changed(std::uint64_t now_ns);
  std::uint64_t on_tick(double time_ns) const;

  const int nodes_;
  const std::uint64_t tick_ns_;
  std::vector<int> rack_of_;
  FairShare share_;
  std::vector<Pipe> pipes_;    // by flow
  std::vector<double> bytes_;  // by resource
  std::vector<int> completed_;
  std::uint64_t share_at_ns_ = kNever;  // when rates are to be found
  std::uint64_t finish_at_ns_ = kNever;
};

}  // namespace riffle::sim
