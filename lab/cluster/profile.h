// A bench profile: the network of an emulated cluster, as a TOML file (bench/profiles/*.toml; every
// key: docs/emulator.md). This is what such a file says, as plain data. No state, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/base/status.h"
#include "topology/fabric/fabric.h"

namespace riffle::cluster {

inline constexpr int kMaxEmulatedNodes =
    200;  // one /24 network, and more than a machine can emulate
inline constexpr int kMaxEmulatedNics = 4;

struct Fault {
  int node = -1;  // -1: none
  int after_ms = 0;
  std::vector<std::string> kinds;  // "kill", "stop"
};

// Foreign traffic on one node's link, while it is on (neighbour.h).
struct Neighbour {
  int node = -1;  // -1: none
  std::int64_t guaranteed_kbps = 0;
};

// Out of a node, a rack or a pod, and into it; 0: not limited.
struct Rates {
  std::int64_t out_kbps = 0;
  std::int64_t in_kbps = 0;

  std::int64_t least_kbps() const { return out_kbps < in_kbps ? out_kbps : in_kbps; }
  bool operator==(const Rates&) const = default;
};

struct Rack {
  std::string name;
  Rates uplink;
  int pod = -1;  // index in Profile::pods; -1: its uplink leads to the core
};

struct Pod {
  std::string name;
  Rates uplink;
};

enum class Shaper { kTbf, kHtb, kPolicer };

// How the limits of all links are made (link.h).
struct Shaping {
  Shaper shaper = Shaper::kTbf;
  std::int64_t queue_ms = 0;     // 0: queue_bytes; both 0: 40 ms, at least 1.5 MB
  std::int64_t queue_bytes = 0;  // 0: queue_ms
  std::int64_t burst_bytes = 72'000;
  std::int64_t gso_max_bytes = 0;  // 0: 16 KiB where a node has a rate, else as the kernel does
};

// Foreign traffic between two nodes, all the time or on and off (background.h).
struct BackgroundFlow {
  int from = 0, to = 0;
  std::int64_t rate_kbps = 0;
  int on_ms = 0, off_ms = 0;  // both 0: always on

  // Averaged over its periods.
  std::int64_t mean_kbps() const {
    return off_ms == 0 ? rate_kbps : rate_kbps * on_ms / (on_ms + off_ms);
  }
};

struct Profile {
  std::string name;  // of the file, without folder and ending
  std::string about;
  std::vector<Rates> rates;      // per node, of each of its NICs
  std::vector<int> rack_of;      // per node
  std::vector<int> cpu_percent;  // per node, of one processor; 0: not limited
  std::vector<Rack> racks;       // at least one
  std::vector<Pod> pods;         // a second tier, may be none
  std::vector<BackgroundFlow> flows;
  Shaping shaping;
  int nics = 1;                   // of every node
  bool packet_filter = false;     // bridges pass packets to the machine's packet filter
  bool equal_host_names = false;  // all nodes are called "node"
  Fault fault;
  Neighbour neighbour;
  // Of all TCP between nodes (congestion.h); empty: the machine's. No file says it: whatever runs
  // on the network chooses.
  std::string congestion = {};

  int size() const { return static_cast<int>(rates.size()); }
  bool shaped() const;  // every node has a rate, so that a bound exists
};

// The same network with more or fewer nodes: node r is as node r mod size() was, in rate, rack and
// processor. Nodes of a fault, a neighbour or a background flow must be among them.
Result<Profile> resized(const Profile& profile, int nodes);

// N equal nodes on one switch, for tests.
Profile even_profile(int nodes, std::int64_t rate_kbps);

// f(kbps) for every limit on the way of a flow, 0 where there is none; on one NIC of each node.
template <class F>
void for_each_link(Profile& profile, const BackgroundFlow& flow, F f) {
  const auto rack_of = [&](int node) -> Rack& {
    return profile.racks[static_cast<std::size_t>(profile.rack_of[static_cast<std::size_t>(node)])];
  };
  f(profile.rates[static_cast<std::size_t>(flow.from)].out_kbps);
  f(profile.rates[static_cast<std::size_t>(flow.to)].in_kbps);
  Rack& from = rack_of(flow.from);
  Rack& to = rack_of(flow.to);
  if (&from == &to) return;
  f(from.uplink.out_kbps);
  f(to.uplink.in_kbps);
  if (from.pod == to.pod) return;
  if (from.pod >= 0) f(profile.pods[static_cast<std::size_t>(from.pod)].uplink.out_kbps);
  if (to.pod >= 0) f(profile.pods[static_cast<std::size_t>(to.pod)].uplink.in_kbps);
}

// How a fabric file must name a node: its host name, or its address where these are equal.
std::string fabric_name_of(const Profile& profile, int node);
// The profile as the planner sees it. Needs shaped(). What background flows carry, on average, is
// gone from every link they pass. Of a second tier see OneTier in profile_fabric.cc.
Fabric fabric_of(const Profile& profile);
// ... while the neighbour is on: its node keeps what is not guaranteed to the foreign flow.
Fabric contended_fabric_of(const Profile& profile);

}  // namespace riffle::cluster
