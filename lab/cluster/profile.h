// A bench profile: the network of an emulated cluster, as a TOML file (bench/profiles/*.toml).
//
//   about = "one sentence"
//   nodes = 8                  # node r has rank r, host name node<r>, address 10.77.0.<r+1>
//   rate_mbps = 400            # every node's link in both directions; absent: not limited
//   [[exception]]              # nodes that differ
//   nodes = [3]
//   rate_mbps = 100
//   [[rack]]                   # none: all nodes hang on one switch
//   name = "left"
//   nodes = [0, 2, 4, 6]
//   uplink_mbps = 200          # shared by the rack's nodes, in both directions; absent: not
//   limited
//   [fault]                    # what `riffle bench` does to one node in mid-collective
//   node = 5
//   after_ms = 150
//   kinds = ["kill", "stop"]
//   [neighbour]                # a foreign flow beside one node's traffic, on and off again
//   node = 3
//   guaranteed_mbps = 300      # of the node's link, in both directions, while the flow is on
//
// Every fault of a file is a Status naming file, key and accepted values. No state, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/base/status.h"
#include "topology/fabric/fabric.h"

namespace riffle::cluster {

inline constexpr int kMaxEmulatedNodes =
    200;  // one /24 network, and more than a machine can emulate

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

struct Rack {
  std::string name;
  std::int64_t uplink_kbps = 0;  // 0: not limited
};

struct Profile {
  std::string name;  // of the file, without folder and ending
  std::string about;
  std::vector<std::int64_t> rate_kbps;  // per node; 0: not limited
  std::vector<int> rack_of;             // per node
  std::vector<Rack> racks;              // at least one
  Fault fault;
  Neighbour neighbour;

  int size() const { return static_cast<int>(rate_kbps.size()); }
  bool shaped() const;  // every node has a rate, so that a bound exists
};

Result<Profile> parse_profile(const std::string& text, const std::string& origin);
// A path, or the name of a file in `folder`.
Result<Profile> load_profile(const std::string& name, const std::string& folder);
// The names in a folder, sorted.
std::vector<std::string> profile_names(const std::string& folder);

// The same network with more or fewer nodes: node r is as node r mod size() was, in rate and rack.
// A fault's or neighbour's node must be among them.
Result<Profile> resized(const Profile& profile, int nodes);

// N equal nodes on one switch, for tests.
Profile even_profile(int nodes, std::int64_t rate_kbps);

// The profile as the planner sees it. Needs shaped().
Fabric fabric_of(const Profile& profile);
// ... while the neighbour is on: its node keeps what is not guaranteed to the foreign flow.
Fabric contended_fabric_of(const Profile& profile);

}  // namespace riffle::cluster
