// Which addresses become devices: NCCL's interface rules on machines made of data.
#include "plugin/transport/device/device_choice.h"

#include <gtest/gtest.h>

namespace riffle::device_choice_test {
namespace {

NicAddress v4(const std::string& name, const std::string& address) {
  return {.interface = name, .address = address};
}
NicAddress v6(const std::string& name, const std::string& address) {
  return {.interface = name, .address = address, .is_ipv6 = true, .scope_id = 2};
}

const std::vector<NicAddress> kServer = {
    v4("lo", "127.0.0.1"),       v4("eth0", "10.0.0.5"),        v4("eth1", "10.1.0.5"),
    v4("docker0", "172.17.0.1"), v4("virbr0", "192.168.122.1"), v6("lo", "::1"),
    v6("eth0", "2001:db8::5"),   v6("eth1", "fe80::1"),         v6("ib0", "2001:db8:1::5")};

Nic nic(const std::string& name, std::optional<int> speed_mbps) {
  Nic n;
  n.name = name;
  n.is_up = n.is_running = true;
  n.speed_mbps = speed_mbps;
  n.mac = "52:54:00:00:00:" + name.substr(name.size() - 1);
  n.pci_path = "/sys/devices/pci0000:00/" + name;
  return n;
}

std::string chosen(const DeviceChoice& choice, std::vector<std::string>* warnings = nullptr,
                   const std::vector<NicAddress>& machine = kServer) {
  std::vector<std::string> unused;
  std::string text;
  for (const Device& d :
       choose_devices(machine, {}, choice, warnings != nullptr ? warnings : &unused)) {
    text += d.name + "=";
    for (const NicAddress& a : d.addresses) text += a.interface + "/" + a.address + " ";
  }
  return text;
}

TEST(InterfaceFilter, NcclsSyntax) {
  const auto accepts = [](const char* rule, const char* name) {
    return InterfaceFilter(rule).accepts(name);
  };
  EXPECT_TRUE(accepts("eth", "eth0"));
  EXPECT_TRUE(accepts("ib,eth", "eth0"));
  EXPECT_FALSE(accepts("eth", "veth0"));
  EXPECT_TRUE(accepts("=eth0", "eth0"));
  EXPECT_FALSE(accepts("=eth0", "eth01"));
  EXPECT_FALSE(accepts("=eth", "eth0"));
  EXPECT_TRUE(accepts("=eth0,ib0", "ib0"));
  EXPECT_FALSE(accepts("^docker,lo", "docker0"));
  EXPECT_TRUE(accepts("^docker,lo", "eth0"));
  EXPECT_FALSE(accepts("^=eth0", "eth0"));
  EXPECT_TRUE(accepts("^=eth0", "eth01"));
  EXPECT_TRUE(accepts("eth0:1234", "eth0"));
  EXPECT_TRUE(accepts("", "anything"));
}

TEST(DeviceChoice, ByDefaultAllRealInterfacesAsOne) {
  EXPECT_EQ(chosen({}), "riffle0=eth0/10.0.0.5 eth1/10.1.0.5 ib0/2001:db8:1::5 ");
}

TEST(DeviceChoice, OnePerNicWhenAsked) {
  EXPECT_EQ(chosen({.per_nic = true}),
            "eth0=eth0/10.0.0.5 eth1=eth1/10.1.0.5 ib0=ib0/2001:db8:1::5 ");
}

TEST(DeviceChoice, FamilyIsAPreference) {
  EXPECT_EQ(chosen({.rule = "=eth0", .family = "ipv6"}), "riffle0=eth0/2001:db8::5 ");
  EXPECT_EQ(chosen({.rule = "=eth0", .family = "ipv4"}), "riffle0=eth0/10.0.0.5 ");
  EXPECT_EQ(chosen({.rule = "=ib0", .family = "ipv4"}), "riffle0=ib0/2001:db8:1::5 ");
}

TEST(DeviceChoice, LinkLocalOnlyWhereThereIsNothingElse) {
  EXPECT_EQ(chosen({.rule = "eth", .family = "ipv6"}), "riffle0=eth0/2001:db8::5 eth1/10.1.0.5 ");
  EXPECT_EQ(chosen({}, nullptr, {v6("eth0", "fe80::1"), v6("eth1", "2001:db8::1")}),
            "riffle0=eth1/2001:db8::1 ");
  EXPECT_EQ(chosen({}, nullptr, {v6("eth0", "fe80::1")}), "riffle0=eth0/fe80::1 ");
}

TEST(DeviceChoice, DockerAndLoopbackWhenAskedFor) {
  std::vector<std::string> warnings;
  EXPECT_EQ(chosen({.rule = "docker"}, &warnings), "riffle0=docker0/172.17.0.1 ");
  EXPECT_EQ(chosen({.rule = "=lo"}, &warnings), "riffle0=lo/127.0.0.1 ");
  EXPECT_TRUE(warnings.empty());
}

TEST(DeviceChoice, AnUnknownNameNamesTheKnobAndWhatThereIs) {
  std::vector<std::string> warnings;
  EXPECT_EQ(chosen({.rule = "=eth7", .rule_source = "RIFFLE_SOCKET_IFNAME"}, &warnings),
            chosen({}));
  ASSERT_EQ(warnings.size(), 1u);
  for (const char* part : {"RIFFLE_SOCKET_IFNAME", "=eth7", "eth0, eth1, docker0"}) {
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  }
}

TEST(DeviceChoice, TheLastResortIsDockerThenLoopbackWithAWarning) {
  std::vector<std::string> warnings;
  EXPECT_EQ(chosen({}, &warnings, {v4("lo", "127.0.0.1"), v4("docker0", "172.17.0.1")}),
            "riffle0=docker0/172.17.0.1 ");
  EXPECT_EQ(chosen({}, &warnings, {v4("lo", "127.0.0.1"), v4("virbr0", "192.168.122.1")}),
            "riffle0=lo/127.0.0.1 ");
  EXPECT_EQ(chosen({}, &warnings, {}), "riffle0=lo/127.0.0.1 ");
  EXPECT_EQ(warnings.size(), 3u);
}

TEST(DeviceChoice, SpeedsAddUpAndAreNeverTooSmallForNccl) {
  std::vector<std::string> warnings;
  const auto speed = [&](const std::vector<Nic>& nics) {
    return choose_devices({v4("eth0", "10.0.0.5"), v4("eth1", "10.1.0.5")}, nics, {}, &warnings)[0]
        .speed_mbps;
  };
  EXPECT_EQ(speed({nic("eth0", 25'000), nic("eth1", 100'000)}), 125'000);
  EXPECT_EQ(speed({nic("eth0", 100), nic("eth1", 100)}), 1'000);
  EXPECT_EQ(speed({nic("eth0", std::nullopt), nic("eth1", 1'000)}), 11'000);
}

TEST(DeviceChoice, TheDeviceStandsWhereTheFastestCardIs) {
  std::vector<std::string> warnings;
  const auto path = [&](std::optional<int> first, std::optional<int> second) {
    return choose_devices({v4("eth0", "10.0.0.5"), v4("eth1", "10.1.0.5")},
                          {nic("eth0", first), nic("eth1", second)}, {}, &warnings)[0]
        .pci_path;
  };
  EXPECT_EQ(path(1'000, 400'000), "/sys/devices/pci0000:00/eth1");
  EXPECT_EQ(path(400'000, 400'000), "/sys/devices/pci0000:00/eth0");
  EXPECT_EQ(path(std::nullopt, std::nullopt), "/sys/devices/pci0000:00/eth0");
}

TEST(DeviceChoice, ABondIsWhereItsCardsAreAndAsFastAsTheyAre) {
  std::vector<std::string> warnings;
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
    const auto devices = choose_devices({v4(name, "10.0.0.5")}, nics, {}, &warnings);
    EXPECT_EQ(devices[0].pci_path, "/sys/devices/pci0000:00/eth0") << name;
    EXPECT_EQ(devices[0].speed_mbps, 50'000) << name;
  }
}

TEST(DeviceChoice, WithoutACarrierAnInterfaceIsLeftOut) {
  std::vector<std::string> warnings;
  Nic down = nic("eth0", 10'000);
  down.is_running = false;
  const auto devices = choose_devices({v4("eth0", "10.0.0.5"), v4("eth1", "10.1.0.5")},
                                      {down, nic("eth1", 10'000)}, {}, &warnings);
  ASSERT_EQ(devices[0].addresses.size(), 1u);
  EXPECT_EQ(devices[0].addresses[0].interface, "eth1");
  EXPECT_EQ(devices[0].pci_path, "/sys/devices/pci0000:00/eth1");
}

TEST(DeviceChoice, IdentityIsThatOfTheCards) {
  std::vector<std::string> warnings;
  const auto guid = [&](const char* address, const char* name) {
    return choose_devices({v4(name, address)}, {nic("eth0", 1), nic("eth1", 1)}, {}, &warnings)[0]
        .guid;
  };
  EXPECT_EQ(guid("10.0.0.1", "eth0"), guid("10.0.0.2", "eth0"));
  EXPECT_NE(guid("10.0.0.1", "eth0"), guid("10.0.0.1", "eth1"));
}

}  // namespace
}  // namespace riffle::device_choice_test
