// The emulated network itself: bridges, veth pairs and rate limits, made with ip and tc (iproute2).
//
//   node r: eth0 ---- n<r> | bridge rack<k> | up<k> ---- down<k> | bridge core
//
// With a second tier a rack of pod p leads to `bridge pod<p> | out<p> ---- in<p> | bridge core`
// instead. Further NICs of a node, eth1 ..., lead to ports n<r>.1 ... of the same bridge, each with
// an address in a subnet of its own.
//
// A node's link is limited (link.h) at both ends: what it sends in its own namespace (so TCP feels
// the queue at once, as with a NIC), what it receives at the bridge's port. Uplinks likewise. A
// policer limits what a node sends where it arrives at the switch.
//
// The link of a node with a neighbour (profile.h) has one class of traffic for the node, one for
// the neighbour's address, which is that of one more node behind the same bridge; whichever is idle
// lends its rate to the other.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

// Payload per byte on the wire for an ideal TCP flow at MTU 1500 (with timestamps).
inline constexpr std::int64_t kPayloadBytes = 1448;
inline constexpr std::int64_t kFrameBytes = 1514;

// 10.77.<nic>.<node + 1>; the neighbour is node size()
std::string address_of(int node, int nic = 0);

// In the switch's namespace: everything but the nodes' own ends.
Status set_up_switch(const Profile& profile, const std::vector<pid_t>& holders);
// In a node's namespace, after set_up_switch.
Status set_up_node(const Profile& profile, int node);

}  // namespace riffle::cluster
