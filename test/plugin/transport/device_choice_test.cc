// What the chosen NICs become.
#include "plugin/transport/device/device_choice.h"

#include <gtest/gtest.h>

namespace riffle::device_choice_test {
namespace {

NicAddress v4(const std::string& name, const std::string& address) {
  return {.interface = name, .address = address};
}

Nic nic(const std::string& name, std::optional<int> speed_mbps) {
  Nic n;
  n.name = name;
  n.is_up = n.is_running = true;
  n.speed_mbps = speed_mbps;
  n.mac = "52:54:00:00:00:" + name.substr(name.size() - 1);
  n.pci_path = "/sys/devices/pci0000:00/" + name;
  return n;
}

const std::vector<NicAddress> kTwo = {v4("eth0", "10.0.0.5"), v4("eth1", "10.1.0.5")};

TEST(DeviceChoice, AllNicsAreOneDevice) {
  const auto devices = make_devices(kTwo, {}, false);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "riffle0");
  ASSERT_EQ(devices[0].addresses.size(), 2u);
  EXPECT_EQ(devices[0].addresses[1].address, "10.1.0.5");
}

TEST(DeviceChoice, OnePerNicWhenAsked) {
  const auto devices = make_devices(kTwo, {}, true);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "eth0");
  EXPECT_EQ(devices[1].name, "eth1");
  ASSERT_EQ(devices[1].addresses.size(), 1u);
  EXPECT_EQ(devices[1].addresses[0].address, "10.1.0.5");
}

TEST(DeviceChoice, SpeedsAddUpAndAreNeverTooSmallForNccl) {
  const auto speed = [&](const std::vector<Nic>& nics) {
    return make_devices(kTwo, nics, false)[0].speed_mbps;
  };
  EXPECT_EQ(speed({nic("eth0", 25'000), nic("eth1", 100'000)}), 125'000);
  EXPECT_EQ(speed({nic("eth0", 100), nic("eth1", 100)}), 1'000);
  EXPECT_EQ(speed({nic("eth0", std::nullopt), nic("eth1", 1'000)}), 11'000);
}

TEST(DeviceChoice, TheDeviceStandsWhereTheFastestCardIs) {
  const auto path = [&](std::optional<int> first, std::optional<int> second) {
    return make_devices(kTwo, {nic("eth0", first), nic("eth1", second)}, false)[0].pci_path;
  };
  EXPECT_EQ(path(1'000, 400'000), "/sys/devices/pci0000:00/eth1");
  EXPECT_EQ(path(400'000, 400'000), "/sys/devices/pci0000:00/eth0");
  EXPECT_EQ(path(std::nullopt, std::nullopt), "/sys/devices/pci0000:00/eth0");
}

TEST(DeviceChoice, ABondIsWhereItsCardsAreAndAsFastAsTheyAre) {
  Nic bond = nic("bond0", std::nullopt);
  bond.is_virtual = true;
  bond.pci_path.clear();
  bond.bond_members = {"eth0", "eth1"};
  Nic vlan = bond;
  vlan.name = "bond0.7";
  vlan.bond_members.clear();
  vlan.lower = {"bond0"};
  const std::vector<Nic> nics = {bond, vlan, nic("eth0", 25'000), nic("eth1", 25'000)};
  for (const char* name : {"bond0", "bond0.7"}) {
    const auto devices = make_devices({v4(name, "10.0.0.5")}, nics, false);
    EXPECT_EQ(devices[0].pci_path, "/sys/devices/pci0000:00/eth0") << name;
    EXPECT_EQ(devices[0].speed_mbps, 50'000) << name;
  }
  const auto both = make_devices({v4("bond0", "10.0.0.5"), v4("bond0.7", "10.7.0.5")}, nics, false);
  EXPECT_EQ(both[0].speed_mbps, 50'000) << "one wire counted twice";
}

TEST(DeviceChoice, IdentityIsThatOfTheCards) {
  const auto guid = [&](const char* address, const char* name) {
    return make_devices({v4(name, address)}, {nic("eth0", 1), nic("eth1", 1)}, false)[0].guid;
  };
  EXPECT_EQ(guid("10.0.0.1", "eth0"), guid("10.0.0.2", "eth0"));
  EXPECT_NE(guid("10.0.0.1", "eth0"), guid("10.0.0.1", "eth1"));
}

}  // namespace
}  // namespace riffle::device_choice_test
