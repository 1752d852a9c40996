// By which of this node's NICs a stream leaves and at which of the peer's it arrives. Data in, data
// out.
//
// A listener's handle lists an endpoint per NIC. Pairs of an address of this node and an endpoint
// in its network come first, in an order that uses every NIC once before one twice (NIC 0 to NIC 0,
// NIC 1 to NIC 1, then crosswise), and streams start at successive pairs: so that joined NICs all
// carry traffic on both sides. A socket is bound
// to the pair's own address; where several NICs share a network, which of them a packet takes is
// then for the machine's source routing to say (ip rule), as ever with several NICs in one network.
// Endpoints in other networks follow, left to the routing table. An endpoint with an address of
// this node is tried only if all are such: else it is of a network that repeats on every node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/transport/base/handle.h"
#include "plugin/transport/device/device.h"

namespace riffle {

struct Route {
  Endpoint to;
  std::optional<NicAddress> from;  // to bind to
  std::uint32_t scope_id = 0;      // for a link-local `to`
};

// Every way to the listener, in the order in which stream number `stream` should try them. Not
// empty if `to` is not.
std::vector<Route> routes(const std::vector<Endpoint>& to, const std::vector<NicAddress>& own,
                          std::size_t stream);

// `wanted` streams, or as many as it takes to use every NIC that shares a network with the peer.
int streams_for(const std::vector<Endpoint>& to, const std::vector<NicAddress>& own, int wanted);

}  // namespace riffle
