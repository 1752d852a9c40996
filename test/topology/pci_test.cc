// topology/host/pci.h: distances in NCCL's words, and the way to a function.
#include "topology/host/pci.h"

#include <gtest/gtest.h>

namespace riffle::pci_test {
namespace {

Place at(const char* path, std::optional<int> numa_node = 0) {
  return {pci_path_of(path), numa_node};
}

TEST(PciPath, IsThePciPartOfASysfsPath) {
  EXPECT_EQ(pci_path_of("/sys/devices/pci0000:00/0000:00:03.0/virtio2"),
            (PciPath{"pci0000:00", "0000:00:03.0"}));
  EXPECT_EQ(pci_path_of("/sys/devices/platform/soc/pci0002:00/0002:00:00.0/0002:01:00.0"),
            (PciPath{"pci0002:00", "0002:00:00.0", "0002:01:00.0"}));
  EXPECT_TRUE(pci_path_of("/sys/devices/virtual/net/lo").empty());
  EXPECT_TRUE(pci_path_of("").empty());
  EXPECT_TRUE(pci_path_of("/sys/devices/pci0000:00").empty());
}

TEST(PciAddress, DomainBusDeviceFunction) {
  EXPECT_TRUE(is_pci_address("0000:3b:00.1"));
  EXPECT_TRUE(is_pci_address("10000:e1:00.0"));
  for (const char* no : {"", ":", "3b:00.1", "0000:3b:00", "0000:3b:00.1x", "0000:zz:00.0",
                         "pci0000:3a", "0000:3b:00:1"}) {
    EXPECT_FALSE(is_pci_address(no)) << no;
  }
}

TEST(Distance, InTheWordsOfNccl) {
  const Place nic = at("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:04.0/0000:14:00.0");
  const auto to = [&](const Place& other) { return std::string(to_text(distance(nic, other))); };
  // The same switch, another port of the card, the same root port without a switch.
  EXPECT_EQ(to(at("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0")), "PIX");
  EXPECT_EQ(to(at("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:04.0/0000:14:00.1")), "PIX");
  EXPECT_EQ(to(nic), "PIX");
  // A switch below the switch.
  EXPECT_EQ(to(at("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:00.0/"
                  "0000:15:00.0")),
            "PXB");
  EXPECT_EQ(to(at("pci0000:10/0000:10:02.0/0000:16:00.0")), "PHB");
  EXPECT_EQ(to(at("pci0000:20/0000:20:01.0/0000:21:00.0")), "NODE");
  EXPECT_EQ(to(at("pci0000:20/0000:20:01.0/0000:21:00.0", 1)), "SYS");
  EXPECT_EQ(to(at("pci0000:20/0000:20:01.0/0000:21:00.0", std::nullopt)), "?");
  EXPECT_EQ(to(at("")), "NODE");
}

TEST(Distance, IsSymmetric) {
  const char* paths[] = {"pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0",
                         "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0/"
                         "0000:15:00.0/0000:16:00.0",
                         "pci0000:10/0000:10:02.0/0000:17:00.0", "pci0000:30/0000:30:00.0", ""};
  for (const char* a : paths) {
    for (const char* b : paths) {
      for (int node = 0; node < 2; ++node) {
        EXPECT_EQ(distance(at(a), at(b, node)), distance(at(b, node), at(a)));
      }
    }
  }
}

TEST(Switches, StandForThemselvesByTheirUpstreamPort) {
  using Ports = std::vector<std::string>;
  EXPECT_EQ(switches_above(pci_path_of("pci0000:10/0000:10:01.0/0000:11:00.0")), Ports{});
  EXPECT_EQ(
      switches_above(pci_path_of("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:04.0/0000:14:00.0")),
      Ports{"0000:11:00.0"});
  EXPECT_EQ(switches_above(pci_path_of("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:04.0/"
                                       "0000:14:00.0/0000:15:00.0/0000:16:00.0")),
            (Ports{"0000:11:00.0", "0000:14:00.0"}));
  EXPECT_EQ(switches_above({}), Ports{});
}

TEST(PciLink, FromWhatHwlocTells) {
  const auto link = [](double rate) {
    const auto found = pci_link_of_rate(rate);
    return found ? std::pair(found->lane_gtps, found->lanes) : std::pair(0.0, 0);
  };
  EXPECT_EQ(link(63.015385), std::pair(32.0, 16));
  EXPECT_EQ(link(31.507692), std::pair(16.0, 16));
  EXPECT_EQ(link(15.753846), std::pair(8.0, 16));
  EXPECT_EQ(link(7.876923), std::pair(8.0, 8));
  EXPECT_EQ(link(2.0), std::pair(2.5, 8));
  EXPECT_EQ(link(0.0), std::pair(0.0, 0));
  EXPECT_EQ(link(-3.0), std::pair(0.0, 0));
  EXPECT_EQ(link(1e30), std::pair(0.0, 0));
}

}  // namespace
}  // namespace riffle::pci_test
