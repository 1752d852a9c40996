// Which NICs the streams of a connection take.
#include "plugin/transport/handshake/routes.h"

#include <gtest/gtest.h>

#include "plugin/transport/reactor/socket.h"

namespace riffle::routes_test {
namespace {

NicAddress nic(const std::string& address, int prefix_bits) {
  return {.interface = "eth",
          .address = address,
          .is_ipv6 = address.find(':') != std::string::npos,
          .scope_id = address.starts_with("fe80") ? 7u : 0u,
          .prefix_bits = prefix_bits};
}

std::vector<Endpoint> endpoints(const std::vector<std::string>& addresses) {
  std::vector<Endpoint> out;
  for (const std::string& a : addresses) out.push_back(*to_endpoint(nic(a, 24)));
  return out;
}

// "from>to" of the first `count` streams' first choice.
std::string first_choices(const std::vector<Endpoint>& to, const std::vector<NicAddress>& own,
                          std::size_t count) {
  std::string text;
  for (std::size_t stream = 0; stream < count; ++stream) {
    const Route r = routes(to, own, stream).front();
    const std::string there = to_text(r.to);
    text += (r.from ? r.from->address : "any") + ">" + there.substr(0, there.rfind(':')) + " ";
  }
  return text;
}

TEST(Routes, EachNicMeetsTheOneInItsNetworkWhateverTheOrder) {
  const std::vector<NicAddress> own = {nic("10.2.0.1", 24), nic("10.1.0.1", 24)};
  EXPECT_EQ(first_choices(endpoints({"10.1.0.2", "10.2.0.2"}), own, 3),
            "10.1.0.1>10.1.0.2 10.2.0.1>10.2.0.2 10.1.0.1>10.1.0.2 ");
}

TEST(Routes, InOneNetworkEveryNicIsUsedOnceBeforeOneIsUsedTwice) {
  const std::vector<NicAddress> own = {nic("10.1.0.1", 16), nic("10.1.1.1", 16)};
  EXPECT_EQ(first_choices(endpoints({"10.1.0.2", "10.1.1.2"}), own, 4),
            "10.1.0.1>10.1.0.2 10.1.1.1>10.1.1.2 10.1.1.1>10.1.0.2 10.1.0.1>10.1.1.2 ");
  EXPECT_EQ(first_choices(endpoints({"10.1.0.2"}), own, 2), "10.1.0.1>10.1.0.2 10.1.1.1>10.1.0.2 ");
  EXPECT_EQ(first_choices(endpoints({"10.1.0.2", "10.1.1.2"}), {own[0]}, 2),
            "10.1.0.1>10.1.0.2 10.1.0.1>10.1.1.2 ");
}

TEST(Routes, WithoutACommonNetworkTheRoutingTableDecides) {
  const std::vector<NicAddress> own = {nic("192.168.7.1", 24), nic("10.1.0.9", 0)};
  EXPECT_EQ(first_choices(endpoints({"10.1.0.2", "10.2.0.2"}), own, 3),
            "any>10.1.0.2 any>10.2.0.2 any>10.1.0.2 ");
  EXPECT_EQ(first_choices(endpoints({"10.1.0.2"}), {}, 1), "any>10.1.0.2 ");
}

TEST(Routes, EveryEndpointIsTriedAndNeighboursFirst) {
  const std::vector<NicAddress> own = {nic("10.3.0.1", 24)};
  const auto all = routes(endpoints({"10.1.0.2", "10.2.0.2", "10.3.0.2"}), own, 0);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].from.has_value());
  EXPECT_EQ(all[0].to.address[1], 3);
  EXPECT_FALSE(all[1].from.has_value() || all[2].from.has_value());
}

TEST(Routes, PrefixesNeedNotEndAtAByte) {
  const std::vector<NicAddress> own = {nic("10.1.0.1", 23)};
  EXPECT_TRUE(routes(endpoints({"10.1.1.200"}), own, 0)[0].from.has_value());
  EXPECT_FALSE(routes(endpoints({"10.1.2.200"}), own, 0)[0].from.has_value());
}

TEST(Routes, LinkLocalAddressesCarryTheInterface) {
  const std::vector<NicAddress> own = {nic("fd00::1", 64), nic("fe80::1", 64)};
  const auto all = routes(endpoints({"fe80::2"}), own, 0);
  ASSERT_TRUE(all[0].from.has_value());
  EXPECT_EQ(all[0].scope_id, 7u);
  EXPECT_EQ(first_choices(endpoints({"fd00::2"}), own, 1), "fd00::1>[fd00::2] ");
  EXPECT_EQ(first_choices(endpoints({"10.1.0.2"}), own, 1), "any>10.1.0.2 ");
}

TEST(Routes, AnAddressOfThisNodeLeadsBackHere) {
  // Both nodes have a bridge of virtual machines.
  const std::vector<NicAddress> own = {nic("10.1.0.1", 24), nic("192.168.122.1", 24)};
  const auto peer = endpoints({"192.168.122.1", "10.1.0.2"});
  EXPECT_EQ(first_choices(peer, own, 2), "10.1.0.1>10.1.0.2 10.1.0.1>10.1.0.2 ");
  EXPECT_EQ(routes(peer, own, 0).size(), 1u);
  EXPECT_EQ(streams_for(peer, own, 1), 1);
  // The peer is this machine.
  const auto self = endpoints({"10.1.0.1", "192.168.122.1"});
  EXPECT_EQ(routes(self, own, 0).size(), 2u);
  EXPECT_EQ(first_choices(endpoints({"10.1.0.1"}), own, 1), "10.1.0.1>10.1.0.1 ");
}

TEST(Routes, ThereAreStreamsForEveryNic) {
  const auto both = endpoints({"10.1.0.2", "10.2.0.2"});
  const std::vector<NicAddress> own = {nic("10.1.0.1", 24), nic("10.2.0.1", 24)};
  EXPECT_EQ(streams_for(both, own, 1), 2);
  EXPECT_EQ(streams_for(both, own, 5), 5);
  EXPECT_EQ(streams_for(both, {own[0]}, 1), 1);
  EXPECT_EQ(streams_for(both, {nic("10.0.0.1", 8)}, 1), 2);
  EXPECT_EQ(streams_for(both, {}, 3), 3);
}

}  // namespace
}  // namespace riffle::routes_test
