// Networks that are not made by hand: a profile from a number. A pure function, the same on every
// machine and with every library (no std::distribution).
//
// Drawn are: 4 to 14 nodes with up to 4 classes of rates of at most 400 Mbit/s; 1 to 5 racks of
// uneven sizes and uplinks, ranks in order, in turn or at random; sometimes a second tier, rates
// that differ by direction, background flows; shaper, queues, bursts, packet sizes, packet filter,
// host names. A third of them come in the plain manner of plain_shaping(). Nodes have one NIC and
// all of their processor.
//
// Where there is a second tier, at most one of both tiers limits what a node can reach, so that
// fabric_of() is exact.
#pragma once

#include <cstdint>

#include "lab/cluster/profile.h"

namespace riffle::cluster {

Profile random_profile(std::uint64_t seed);

// As most scripts shape a network of namespaces: a token bucket of 128 kB with a queue of 60 ms at
// every port, packets as large as the kernel makes them, the packet filter on and one host name.
void plain_shaping(Profile& profile);

}  // namespace riffle::cluster
