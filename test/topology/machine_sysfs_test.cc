// read_machine_sysfs on trees made here: the machine without hwloc, down to trees that make no
// sense.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "topology/host/machine_read.h"

namespace riffle::machine_sysfs_test {
namespace {

namespace fs = std::filesystem;

class SysfsMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::canonical(::testing::TempDir()) / (std::string("riffle_machine_") + info->name());
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
    fs::create_directory_symlink(root_ / to, root_ / from);
  }
  // Two nodes of two cores of two threads: cores {0,4} {1,5} | {2,6} {3,7}.
  void processors() {
    write("devices/system/cpu/online", "0-7");
    for (int cpu = 0; cpu < 8; ++cpu) {
      const fs::path topology = "devices/system/cpu/cpu" + std::to_string(cpu) + "/topology";
      write(topology / "thread_siblings_list",
            std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
      write(topology / "physical_package_id", std::to_string(cpu % 4 / 2));
    }
    write("devices/system/node/node0/cpulist", "0-1,4-5");
    write("devices/system/node/node1/cpulist", "2-3,6-7");
    write("devices/system/node/node1/meminfo", "Node 1 MemTotal:       65536000 kB");
    write("devices/system/node/possible", "0-1");
  }
  void pci(const std::string& path, const char* class_code, const char* vendor, int numa_node) {
    const std::string address = fs::path(path).filename().string();
    const fs::path folder = fs::path("devices") / path;
    write(folder / "class", class_code);
    write(folder / "vendor", vendor);
    write(folder / "device", "0x1234");
    write(folder / "numa_node", std::to_string(numa_node));
    write(folder / "max_link_speed", "16.0 GT/s PCIe");
    write(folder / "max_link_width", "16");
    link("bus/pci/devices/" + address, folder);
  }

  fs::path root_;
};

TEST_F(SysfsMachine, CoresNodesAndCards) {
  processors();
  pci("pci0000:40/0000:40:01.0", "0x060400", "0x8086", 1);
  pci("pci0000:40/0000:40:01.0/0000:41:00.0", "0x030200", "0x10de", 1);
  pci("pci0000:00/0000:00:02.0", "0x030000", "0x1a03", 0);  // the board's VGA chip
  pci("pci0000:00/0000:00:03.0", "0x020000", "0x15b3", 0);
  const auto m = read_machine_sysfs(root_.string());
  ASSERT_TRUE(m.is_ok()) << m.status().message();
  ASSERT_EQ(m->cores.size(), 4u);
  EXPECT_EQ(m->cores[1].cpus, (CpuList{1, 5}));
  EXPECT_EQ(m->cores[1].numa_node, 0);
  EXPECT_EQ(m->cores[3].cpus, (CpuList{3, 7}));
  EXPECT_EQ(m->cores[3].processor, 1);
  ASSERT_EQ(m->numa_nodes.size(), 2u);
  EXPECT_EQ(m->numa_nodes[1].memory_mib, 64000);
  EXPECT_EQ(m->numa_nodes[1].processor, 1);
  ASSERT_EQ(m->gpus.size(), 1u);
  EXPECT_EQ(m->gpus[0].vendor, "NVIDIA");
  EXPECT_EQ(m->gpus[0].numa_node, 1);
  ASSERT_EQ(m->pci.size(), 3u);  // the NIC, the GPU and the root port above it
  EXPECT_EQ(m->pci[1].address(), "0000:40:01.0");
  EXPECT_EQ(m->pci[2].lanes, 16);
  EXPECT_EQ(m->pci[2].lane_gtps, 16.0);
}

TEST_F(SysfsMachine, OnlyProcessors) {
  processors();
  const auto m = read_machine_sysfs(root_.string());
  ASSERT_TRUE(m.is_ok());
  EXPECT_TRUE(m->nics.empty());
  EXPECT_TRUE(m->gpus.empty());
}

TEST_F(SysfsMachine, NonsenseIsLeftOut) {
  write("devices/system/cpu/online", "0-1");
  write("devices/system/cpu/cpu0/topology/thread_siblings_list", "zebra");
  write("devices/system/node/node0/cpulist", "9-0");
  write("devices/system/node/nodeX/cpulist", "0");
  pci("pci0000:00/0000:00:03.0", "lots", "0xzz", 7);
  const auto m = read_machine_sysfs(root_.string());
  ASSERT_TRUE(m.is_ok());
  EXPECT_EQ(m->cores.size(), 2u);
  EXPECT_EQ(m->numa_nodes.size(), 1u);
  EXPECT_TRUE(m->pci.empty());
}

TEST_F(SysfsMachine, ADeviceThatVanishesIsLeftOut) {
  processors();
  link("bus/pci/devices/0000:00:03.0", "devices/pci0000:00/0000:00:03.0");
  link("class/net/eth9", "devices/pci0000:00/0000:00:03.0/net/eth9");
  const auto m = read_machine_sysfs(root_.string());
  ASSERT_TRUE(m.is_ok());
  EXPECT_TRUE(m->nics.empty());
  EXPECT_TRUE(m->pci.empty());
}

TEST_F(SysfsMachine, ANodeThatDoesNotExistIsNoted) {
  processors();
  pci("pci0000:40/0000:40:00.0", "0x030200", "0x10de", 5);
  const auto m = read_machine_sysfs(root_.string());
  ASSERT_TRUE(m.is_ok());
  EXPECT_FALSE(m->gpus[0].numa_node.has_value());
  ASSERT_EQ(m->notes.size(), 1u);
  EXPECT_NE(m->notes[0].find("NUMA node 5"), std::string::npos);
}

TEST(SysfsMachineNowhere, IsAnErrorThatNamesTheTree) {
  const auto m = read_machine_sysfs("/nowhere/sys");
  ASSERT_FALSE(m.is_ok());
  EXPECT_NE(m.status().message().find("/nowhere/sys"), std::string::npos);
}

}  // namespace
}  // namespace riffle::machine_sysfs_test
