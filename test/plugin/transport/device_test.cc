// This machine's own devices.
#include "plugin/transport/device/device.h"

#include <filesystem>
#include <fstream>

#include "test/plugin/transport/transport_harness.h"

namespace riffle::device_test {
namespace {

TEST(Device, LoopbackBecauseThisTestAskedForIt) {
  const auto& all = devices(settings().devices);
  ASSERT_TRUE(all) << all.status().message();
  const Device& first = (*all)[0];
  ASSERT_EQ((*all).size(), 1u);
  EXPECT_EQ(first.name, "riffle0");
  ASSERT_EQ(first.addresses.size(), 1u);
  EXPECT_EQ(first.addresses[0].interface, "lo");
  EXPECT_EQ(first.addresses[0].address, "127.0.0.1");
  EXPECT_GE(first.speed_mbps, 1000);
  EXPECT_EQ(&devices(settings().devices), &all);  // pointers into it stay valid
}

TEST(Device, NetworksOfAddresses) {
  const auto network = [](const std::string& address, int bits) {
    return network_of({.interface = "eth0",
                       .address = address,
                       .is_ipv6 = address.find(':') != std::string::npos,
                       .prefix_bits = bits});
  };
  EXPECT_EQ(network("10.1.2.77", 24), "10.1.2.0/24");
  EXPECT_EQ(network("10.1.2.77", 26), "10.1.2.64/26");
  EXPECT_EQ(network("10.255.2.77", 9), "10.128.0.0/9");
  EXPECT_EQ(network("2001:db8:1:2:3::7", 64), "2001:db8:1:2::/64");
  EXPECT_EQ(network("10.1.2.77", 30), "10.1.2.76/30");
  EXPECT_EQ(network("10.1.2.77", 31), "") << "two nodes and no more";
  EXPECT_EQ(network("10.1.2.77", 0), "") << "unknown";
  EXPECT_EQ(network("nonsense", 24), "");
}

TEST(Device, SysfsOfAnotherNamespaceSaysNothing) {
  namespace fs = std::filesystem;
  EXPECT_TRUE(interfaces_of_this_machine("/nowhere").nics.empty());
  EXPECT_FALSE(interfaces_of_this_machine("/nowhere").addresses.empty());
  const fs::path root = fs::canonical(::testing::TempDir()) / "riffle_device_test";
  // All that this machine has, as far as the names go.
  const auto with_address_of_lo = [&](const std::string& mac) {
    fs::remove_all(root);
    for (const NicAddress& a : interfaces_of_this_machine("/nowhere").addresses) {
      const fs::path net = root / "class/net" / a.interface;
      fs::create_directories(net);
      std::ofstream(net / "flags") << "0x9\n";
      std::ifstream real("/sys/class/net/" + a.interface + "/address");
      std::ofstream(net / "address") << real.rdbuf();
    }
    std::ofstream(root / "class/net/lo/address") << mac << "\n";
    return interfaces_of_this_machine(root.string()).nics.size();
  };
  EXPECT_EQ(with_address_of_lo("52:54:00:12:34:56"), 0u);
  if (!interfaces_of_this_machine().nics.empty()) {
    EXPECT_GT(with_address_of_lo("00:00:00:00:00:00"), 0u);
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace riffle::device_test
