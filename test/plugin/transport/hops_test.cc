// Routers on the way, as the side that accepted a connection learns of them.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "plugin/transport/reactor/socket.h"

namespace riffle::hops_test {
namespace {

// A connection on loopback whose segments set out with `ttl`.
int hops_with(const NicAddress& nic, int ttl) {
  Endpoint endpoint;
  const Result<Fd> listener = listen_on(nic, &endpoint);
  if (!listener) return -2;
  const Fd client = Fd::make([&] {
    return ::socket(nic.is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  });
  if (nic.is_ipv6) {
    ::setsockopt(client.get(), SOL_IPV6, IPV6_UNICAST_HOPS, &ttl, sizeof ttl);
  } else {
    ::setsockopt(client.get(), SOL_IP, IP_TTL, &ttl, sizeof ttl);
  }
  const SocketAddress to = to_socket_address(endpoint, 0);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size), 0);
  int error = 0;
  const Fd accepted = accept_from(listener->get(), &error);
  EXPECT_EQ(error, 0);
  return hops_of(accepted.get());
}

TEST(Hops, WhatIsMissingFromAnUsualTimeToLive) {
  for (const auto& [ttl, hops] : {std::pair(64, 0), std::pair(61, 3), std::pair(128, 0),
                                  std::pair(125, 3), std::pair(255, 0), std::pair(250, 5)}) {
    EXPECT_EQ(hops_with({.interface = "lo", .address = "127.0.0.1"}, ttl), hops) << ttl;
  }
}

TEST(Hops, OfIPv6AsWell) {
  const NicAddress nic{.interface = "lo", .address = "::1", .is_ipv6 = true};
  const int direct = hops_with(nic, 64);
  if (direct == -2) GTEST_SKIP() << "there is no IPv6 here";
  EXPECT_EQ(direct, 0);
  EXPECT_EQ(hops_with(nic, 60), 4);
}

TEST(Hops, AreUnknownWithoutAConnection) { EXPECT_EQ(hops_of(-1), -1); }

}  // namespace
}  // namespace riffle::hops_test
