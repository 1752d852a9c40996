// How the processes of one launch meet: rank 0 listens, the others connect and prove that they know
// the secret (plugin/transport/handshake/handshake.h: both sides prove it, versions are compared).
// From then on such a connection carries the lines between coordinator and peer (crew.h).
//
// One thread; every call ends by its deadline.
#pragma once

#include <string>

#include "plugin/transport/reactor/socket.h"
#include "tools/probe/crew.h"
#include "tools/probe/launch.h"

namespace riffle::tools {

// Rank 0: listens on all addresses; port 0 is one of the kernel's choice, which *port becomes.
Result<Fd> open_door(int* port);
// Rank 0: lets ranks 1 to size-1 in, as members of the crew, until all are there or time is up;
// then those who are missing are members too, absent ones.
void let_in(const Fd& door, const Secret& secret, int size, int timeout_ms, Crew& crew);
// The others: a connected, blocking socket.
Result<Fd> go_to(const MeetingPoint& meeting, int rank, int timeout_ms);

}  // namespace riffle::tools
