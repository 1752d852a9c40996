// The emulated network itself: bridges, veth pairs and rate limits, made with ip and tc (iproute2).
//
//   node r: eth0 ---- n<r> | bridge rack<k> | up<k> ---- down<k> | bridge core
//
// A node's link is limited by a token bucket at both ends: what it sends in its own namespace (so
// TCP feels the queue at once, as with a NIC), what it receives at the bridge's port. Uplinks
// likewise.
//
// Token bucket (tc-tbf): after a pause a link may send 72 kB ahead of its rate (0.4 % of 16 MiB);
// with less, the timers of a busy machine lose rate. The queue holds 40 ms at the link's rate, but
// at least 1.5 MB (like a switch's buffer), so that seven senders into one link lose next to
// nothing. Packets are segmentation-offload packets of at most 16 KiB: a first-in-first-out queue
// of 64 KiB ones starves some of those seven flows, which a switch that interleaves 1500-byte
// packets does not. Lengths are counted as on the wire: 1514 bytes per 1448 of payload.
//
// The link of a node with a neighbour (profile.h) is limited by tc-htb with the same numbers: one
// class for the node, one for the neighbour's address, which is that of one more node behind the
// same bridge; whichever is idle lends its rate to the other.
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

std::string address_of(int node);  // 10.77.0.<node + 1>; the neighbour is node size()

// In the switch's namespace: everything but the nodes' own ends.
Status set_up_switch(const Profile& profile, const std::vector<pid_t>& holders);
// In a node's namespace, after set_up_switch.
Status set_up_node(const Profile& profile, int node);

}  // namespace riffle::cluster
