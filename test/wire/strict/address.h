// Where the strict plugin listens: Unix sockets of one machine, or TCP where the bench has it stand
// for a library between nodes (STRICT_NET_INTERFACE).
#pragma once

#include <netinet/in.h>
#include <sys/un.h>

#include <string>

namespace strict {

// In a handle, so small.
struct Address {
  bool is_tcp;
  sockaddr_in tcp;
  int process, number;  // else: of the Unix socket, in the abstract namespace
};

// A listening socket and where it is reached; -1: none (`interface` has no IPv4 address, ...).
int listen_at(const std::string& interface, Address* address);
// A socket connected to it, waiting for that; -1: nothing listens there.
int connected_to(const Address& address);

}  // namespace strict
