// topology/host/nics.h on trees made here; the shapes are those of real machines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "topology/host/nics.h"

namespace riffle::nics_test {
namespace {

namespace fs = std::filesystem;

class Nics : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::canonical(::testing::TempDir()) / (std::string("riffle_nics_") + info->name());
    fs::remove_all(root_);
    fs::create_directories(root_ / "class/net");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  void link(const fs::path& from, const fs::path& to) {
    fs::create_directories((root_ / from).parent_path());
    fs::create_directories(root_ / to);
    fs::create_directory_symlink(root_ / to, root_ / from);
  }
  // An interface in `folder` with the attributes that all have.
  void interface(const std::string& name, const fs::path& folder, const std::string& flags,
                 const std::string& carrier, const std::string& speed) {
    link("class/net/" + name, folder / name);
    write(folder / name / "flags", flags);
    if (!carrier.empty()) write(folder / name / "carrier", carrier);
    if (!speed.empty()) write(folder / name / "speed", speed);
    write(folder / name / "address", "52:54:00:12:34:56");
    write(folder / name / "mtu", "1500");
  }
  std::vector<Nic> list() {
    auto nics = list_nics(root_.string());
    EXPECT_TRUE(nics.is_ok()) << nics.status().message();
    return *nics;
  }

  fs::path root_;
};

TEST_F(Nics, PciCard) {
  const fs::path function = "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1";
  interface("ens1f1", function / "net", "0x1003", "1", "100000");
  link(function / "net/ens1f1/device", function);
  link(function / "driver", "bus/pci/drivers/mlx5_core");
  const auto nics = list();
  ASSERT_EQ(nics.size(), 1u);
  EXPECT_EQ(nics[0].name, "ens1f1");
  EXPECT_TRUE(nics[0].is_up);
  EXPECT_TRUE(nics[0].is_running);
  EXPECT_FALSE(nics[0].is_virtual);
  EXPECT_EQ(nics[0].driver, "mlx5_core");
  EXPECT_EQ(nics[0].speed_mbps, 100000);
  EXPECT_EQ(nics[0].pci_path, (root_ / function).string());
  EXPECT_EQ(nics[0].mac, "52:54:00:12:34:56");
  EXPECT_EQ(nics[0].mtu, 1500);
}

TEST_F(Nics, VirtioHangsBelowItsPciFunctionAndKnowsNoSpeed) {
  const fs::path function = "devices/pci0000:00/0000:00:03.0";
  interface("eth0", function / "virtio0/net", "0x1003", "1", "-1");
  link(function / "virtio0/net/eth0/device", function / "virtio0");
  link(function / "virtio0/driver", "bus/virtio/drivers/virtio_net");
  const auto nics = list();
  ASSERT_EQ(nics.size(), 1u);
  EXPECT_EQ(nics[0].pci_path, (root_ / function).string());
  EXPECT_EQ(nics[0].driver, "virtio_net");
  EXPECT_FALSE(nics[0].speed_mbps.has_value());
}

TEST_F(Nics, VirtualDownAndLoopback) {
  interface("veth1", "devices/virtual/net", "0x1002", "", "");
  interface("lo", "devices/virtual/net", "0x9", "1", "");
  interface("veth0", "devices/virtual/net", "0x1003", "0", "10000");
  const auto nics = list();
  ASSERT_EQ(nics.size(), 3u);
  EXPECT_EQ(nics[0].name, "lo");
  EXPECT_TRUE(nics[0].is_loopback);
  EXPECT_TRUE(nics[0].is_virtual);
  EXPECT_EQ(nics[1].name, "veth0");
  EXPECT_TRUE(nics[1].is_up);
  EXPECT_FALSE(nics[1].is_running);
  EXPECT_EQ(nics[1].speed_mbps, 10000);
  EXPECT_FALSE(nics[2].is_up);
  EXPECT_FALSE(nics[2].is_running);
  EXPECT_TRUE(nics[2].pci_path.empty());
}

TEST_F(Nics, BondAndItsMembersButNotBridgePorts) {
  interface("bond0", "devices/virtual/net", "0x1403", "1", "20000");
  write("devices/virtual/net/bond0/bonding/slaves", "eth0 eth1");
  write("devices/virtual/net/bond0/uevent", "DEVTYPE=bond\nINTERFACE=bond0\nIFINDEX=7");
  write("class/net/bonding_masters", "bond0");
  const fs::path function = "devices/pci0000:00/0000:00:04.0";
  interface("eth0", function / "net", "0x1803", "1", "10000");
  link(function / "net/eth0/device", function);
  link(function / "net/eth0/master", "devices/virtual/net/bond0");
  write(function / "net/eth0/bonding_slave/state", "active");
  interface("veth0", "devices/virtual/net", "0x1003", "1", "10000");
  link("devices/virtual/net/veth0/master", "devices/virtual/net/br0");
  const auto nics = list();
  ASSERT_EQ(nics.size(), 3u);
  EXPECT_EQ(nics[0].bond_members, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(nics[0].kind, "bond");
  EXPECT_EQ(nics[1].kind, "");
  EXPECT_EQ(nics[1].bond_master, "bond0");
  EXPECT_EQ(nics[2].bond_master, "");
}

TEST_F(Nics, NonsenseInFilesIsUnknown) {
  interface("eth0", "devices/virtual/net", "zebra", "1", "99999999999999999999");
  const auto nics = list();
  ASSERT_EQ(nics.size(), 1u);
  EXPECT_FALSE(nics[0].is_up);
  EXPECT_FALSE(nics[0].speed_mbps.has_value());
}

TEST_F(Nics, NoTreeIsAnErrorThatNamesIt) {
  const auto nics = list_nics((root_ / "nowhere").string());
  ASSERT_FALSE(nics.is_ok());
  EXPECT_NE(nics.status().message().find("nowhere"), std::string::npos);
}

TEST(RealMachine, HasALoopback) {
  const auto nics = list_nics();
  if (!nics.is_ok()) GTEST_SKIP() << nics.status().message();
  bool found = false;
  for (const Nic& nic : *nics) found |= nic.is_loopback && nic.name == "lo";
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace riffle::nics_test
