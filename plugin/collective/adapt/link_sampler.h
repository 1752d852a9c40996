// LinkSampler: measures a node's own links from the traffic (topology/probe/passive.h): looks at
// the mesh's account of them, and of others' traffic on its NICs, every few milliseconds while
// there is traffic, and tells the peers what they cannot see themselves (RateHints).
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/transport/base/link_activity.h"
#include "plugin/transport/base/timer_service.h"
#include "topology/probe/passive.h"

namespace riffle {

class Mesh;

class LinkSampler {
 public:
  LinkSampler(Mesh* mesh, TimerService* timers);
  ~LinkSampler() { stop(); }
  LinkSampler(const LinkSampler&) = delete;
  LinkSampler& operator=(const LinkSampler&) = delete;

  // By peer: is it behind a limited uplink? And the own link's rate, in kbit/s; 0: not known.
  void set_network(std::vector<bool> is_far, std::uint64_t out_kbps, std::uint64_t in_kbps);
  // There is going to be traffic.
  void wake();
  // What was measured since the last call.
  probe::PassiveReport take() { return meter_.take(); }
  // No timer runs any more.
  void stop();

 private:
  void sample();
  void sample_later();

  Mesh* const mesh_;
  TimerService* const timers_;
  probe::RateMeter meter_;
  std::vector<LinkActivity> seen_;          // per peer, at the last sample
  NicBytes others_seen_;                    // at the last sample
  std::vector<probe::LinkSample> samples_;  // scratch
  std::uint64_t sampled_ns_ = 0;
  int idle_samples_ = 0;
  std::optional<std::uint64_t> timer_;
};

}  // namespace riffle
