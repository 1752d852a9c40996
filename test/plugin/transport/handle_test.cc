// The blob that NCCL's bootstrap carries.
#include "plugin/transport/base/handle.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/wire.h"
#include "plugin/version.h"

namespace riffle::handle_test {
namespace {

// Bit i of `ipv6`: endpoint i is one.
HandleContent example(std::size_t endpoints, unsigned ipv6 = 0) {
  HandleContent c;
  c.communicator = 0x0123456789abcdef;
  c.comm_id = 77;
  c.plugin_version = kPluginVersion;
  std::iota(c.secret.begin(), c.secret.end(), std::uint8_t{1});
  for (std::size_t i = 0; i < endpoints; ++i) {
    Endpoint e;
    std::iota(e.address.begin(), e.address.end(), static_cast<std::uint8_t>(16 * i));
    e.port = static_cast<std::uint16_t>(40000 + i);
    e.is_ipv6 = ipv6 >> i & 1;
    if (!e.is_ipv6) std::fill(e.address.begin() + 4, e.address.end(), std::uint8_t{0});
    c.endpoints.push_back(e);
  }
  return c;
}

bool fits(const std::vector<Endpoint>& endpoints) {
  return has_room({endpoints.begin(), endpoints.end() - 1}, endpoints.back());
}

TEST(Handle, ComesBackAsItWas) {
  for (const auto& [endpoints, ipv6] : std::vector<std::pair<std::size_t, unsigned>>{
           {1, 0}, {1, 1}, {2, 2}, {3, 5}, {4, 15}, {6, 42}, {10, 512}, {12, 0}}) {
    HandleContent in = example(endpoints, ipv6);
    in.is_over_library = endpoints % 2 == 0;
    EXPECT_TRUE(fits(in.endpoints)) << endpoints;
    Handle handle = encode(in);
    for (std::size_t i = 120; i < 128; ++i) {
      EXPECT_EQ(handle.bytes[i], 0);  // no attempt to connect is under way
      handle.bytes[i] = 0xee;         // scratch of the connecting side
    }
    const auto out = decode(handle);
    ASSERT_TRUE(out) << out.status().message();
    EXPECT_EQ(out->communicator, in.communicator);
    EXPECT_EQ(out->comm_id, in.comm_id);
    EXPECT_EQ(out->plugin_version, in.plugin_version);
    EXPECT_EQ(out->is_over_library, in.is_over_library);
    EXPECT_EQ(out->secret, in.secret);
    ASSERT_EQ(out->endpoints.size(), endpoints);
    for (std::size_t i = 0; i < endpoints; ++i) {
      EXPECT_EQ(out->endpoints[i].address, in.endpoints[i].address);
      EXPECT_EQ(out->endpoints[i].port, in.endpoints[i].port);
      EXPECT_EQ(out->endpoints[i].is_ipv6, in.endpoints[i].is_ipv6);
    }
  }
}

TEST(Handle, HasRoomForTwelveOfIpv4OrFourOfIpv6) {
  EXPECT_TRUE(fits(example(12).endpoints));
  EXPECT_FALSE(fits(example(13).endpoints));
  EXPECT_TRUE(fits(example(4, 15).endpoints));
  EXPECT_FALSE(fits(example(5, 15).endpoints));
  EXPECT_FALSE(fits(example(11, 1024).endpoints));
}

// A peer that knows the secret and the checksum may still write nonsense.
TEST(Handle, NamingMoreThanFitsIsRefused) {
  constexpr std::size_t kCount = 40, kIpv6 = 41, kCrc = 116;
  for (const auto& [count, ipv6] :
       {std::pair<std::uint8_t, std::uint8_t>{0, 0}, {13, 0}, {5, 255}}) {
    Handle handle = encode(example(1));
    handle.bytes[kCount] = count;
    handle.bytes[kIpv6] = ipv6;
    put(&handle.bytes[kCrc], crc32c(handle.bytes.data(), kCrc));
    const std::string message = decode(handle).status().message();
    EXPECT_NE(message.find(std::to_string(count) + " endpoints"), std::string::npos) << message;
  }
}

TEST(Handle, AnotherVersionIsRefusedNamingBoth) {
  HandleContent other = example(1);
  other.plugin_version = 3 << 16 | 14 << 8 | 15;
  const std::string message = decode(encode(other)).status().message();
  EXPECT_NE(message.find("3.14.15"), std::string::npos) << message;
  EXPECT_NE(message.find(kVersion), std::string::npos) << message;
}

TEST(Handle, ForeignAndMangledBlobsAreRefused) {
  EXPECT_NE(decode(Handle{}).status().message().find("not one of Riffle"), std::string::npos);
  const Handle good = encode(example(3, 2));
  for (std::size_t bit = 0; bit < 8 * 120; ++bit) {
    Handle bad = good;
    bad.bytes[bit / 8] = static_cast<std::uint8_t>(bad.bytes[bit / 8] ^ 1u << bit % 8);
    EXPECT_FALSE(decode(bad)) << bit;
  }
}

// A node whose NCCL uses its own sockets or InfiniBand: those handles begin with an address.
TEST(Handle, OfNcclsOwnTransportsIsNamedWithItsAddress) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = 4711;
  ::inet_pton(AF_INET, "192.0.2.7", &v4.sin_addr);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = 4711;
  ::inet_pton(AF_INET6, "2001:db8::7", &v6.sin6_addr);
  Handle handle;
  std::memcpy(handle.bytes.data(), &v4, sizeof v4);
  std::string message = decode(handle).status().message();
  EXPECT_NE(message.find("the peer at 192.0.2.7 uses NCCL's own transport"), std::string::npos)
      << message;
  EXPECT_NE(message.find("RIFFLE_NET=tcp"), std::string::npos) << message;
  std::memcpy(handle.bytes.data(), &v6, sizeof v6);
  message = decode(handle).status().message();
  EXPECT_NE(message.find("the peer at 2001:db8::7 uses NCCL's"), std::string::npos) << message;
}

// NCCL refuses a handle that begins with another family than its two, so that its side ends at
// once.
TEST(Handle, OfRiffleIsNoSocketAddressForNccl) {
  sockaddr_in address{};
  const Handle handle = encode(example(1));
  std::memcpy(&address, handle.bytes.data(), sizeof address);
  EXPECT_NE(address.sin_family, AF_INET);
  EXPECT_NE(address.sin_family, AF_INET6);
}

}  // namespace
}  // namespace riffle::handle_test
