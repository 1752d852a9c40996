// One TCP congestion control and one least retransmission timeout for every socket between emulated
// nodes, whichever program opens it and whatever that program asks for: libraries are compared
// under the same ones. On short queues that many send to, all wait for timeouts, and Riffle's
// sockets ask for 8 ms where others keep the kernel's 200 (plugin/transport/reactor/socket.cc).
//
// Both are attributes of the nodes' routes ("congctl lock", "rto_min", which ip locks, too). A
// namespace's own default (tcp_congestion_control) takes only what the machine allows to
// unprivileged processes. From a route's timeout Linux (6.7 and later) also derives how late a
// receiver may acknowledge.
#pragma once

#include <string>

#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

constexpr int kRtoMinMs = 8;  // beyond the round-trip time

// ok for "" (the machine's) and for names this kernel has or can load; else says which it has.
Status check_congestion(const std::string& name);
// In a node's namespace, once its NICs are up. Profile::congestion must have been checked.
Status set_congestion(const Profile& profile, int node);

}  // namespace riffle::cluster
