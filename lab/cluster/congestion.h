// One TCP congestion control for every socket between emulated nodes, whichever program opens it
// and whatever that program asks for: libraries are compared under the same one.
//
// It is an attribute of the nodes' routes ("congctl lock"). A namespace's own default
// (tcp_congestion_control) takes only what the machine allows to unprivileged processes.
#pragma once

#include <string>

#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

// ok for "" (the machine's) and for names this kernel has or can load; else says which it has.
Status check_congestion(const std::string& name);
// In a node's namespace, once its NICs are up. Profile::congestion must have been checked.
Status set_congestion(const Profile& profile, int node);

}  // namespace riffle::cluster
