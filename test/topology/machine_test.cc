// Recorded machines (test/topology/machines) read and compared with what is expected beside them:
// NAME.json, NAME.nccl.xml, or for a broken file NAME.error with a part of the message.
// RIFFLE_TEST_UPDATE=1 writes the expected outputs anew; read the difference before you commit it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "test/hwloc_leaks.h"
#include "topology/host/machine_json.h"
#include "topology/host/machine_read.h"
#include "topology/host/nccl_xml.h"

namespace riffle::machine_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void expect_file(const fs::path& file, const std::string& text) {
  if (std::getenv("RIFFLE_TEST_UPDATE") != nullptr) std::ofstream(file) << text;
  EXPECT_EQ(text, text_of(file)) << "differs from " << file;
}

std::vector<std::string> recorded() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(RIFFLE_MACHINES)) {
    const fs::path& file = entry.path();
    if (file.extension() == ".xml" && file.stem().extension().empty()) {
      names.push_back(file.stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// All hardware NICs under their own names, as NCCL's socket transport shows them.
std::vector<NcclNet> all_nets(const Machine& machine) {
  std::vector<NcclNet> nets;
  for (const Nic& nic : machine.nics) {
    if (nic.is_virtual || !nic.is_running) continue;
    nets.push_back({nic.name, nic.pci_path, nic.speed_mbps.value_or(10'000)});
  }
  return nets;
}

// The library itself, not our reading with it: that must not fail unseen.
bool hwloc_is_missing() { return dlopen("libhwloc.so.15", RTLD_LAZY) == nullptr; }

class Recorded : public ::testing::TestWithParam<std::string> {};

TEST_P(Recorded, ReadsAsExpected) {
  if (hwloc_is_missing()) GTEST_SKIP() << "no hwloc here";
  const fs::path base = fs::path(RIFFLE_MACHINES) / GetParam();
  const std::string name = GetParam() + ".xml";
  const auto machine = parse_machine_xml(text_of(base.string() + ".xml"), name);
  if (GetParam().starts_with("broken")) {
    ASSERT_FALSE(machine.is_ok());
    EXPECT_NE(machine.status().message().find(name), std::string::npos);
    expect_file(base.string() + ".error", machine.status().message() + "\n");
    return;
  }
  ASSERT_TRUE(machine.is_ok()) << machine.status().message();
  expect_file(base.string() + ".json", to_json(*machine));
  expect_file(base.string() + ".nccl.xml", to_nccl_xml(*machine, all_nets(*machine)));
}

INSTANTIATE_TEST_SUITE_P(Machines, Recorded, ::testing::ValuesIn(recorded()), [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Recorded, AreAtLeastTwelve) { EXPECT_GE(recorded().size(), 12u); }

TEST(Recorded, AFileThatIsNotThere) {
  const auto machine = read_machine_xml("/nowhere/machine.xml");
  ASSERT_FALSE(machine.is_ok());
  EXPECT_NE(machine.status().message().find("/nowhere/machine.xml"), std::string::npos);
}

// What a record keeps.
std::string essence(const Machine& m) {
  std::ostringstream text;
  for (const Core& c : m.cores) {
    text << "core " << c.numa_node.value_or(-1) << " " << to_text(c.cpus) << "\n";
  }
  for (const NumaNode& n : m.numa_nodes) text << "node " << n.id << " " << to_text(n.cpus) << "\n";
  for (const Nic& n : m.nics) text << n.name << " " << n.pci_path << "\n";
  for (const Gpu& g : m.gpus) text << g.name << " " << g.pci_path.back() << "\n";
  return text.str();
}

TEST(ThisMachine, HwlocSeesAllCpusOfTheKernel) {
  if (hwloc_is_missing()) GTEST_SKIP() << "no hwloc here";
  const Machine machine = read_machine({});
  EXPECT_TRUE(machine.source.starts_with("hwloc, API 2.")) << machine.source;
  EXPECT_FALSE(machine.is_flat);
  EXPECT_EQ(to_text(cpus_of(machine)) + "\n", text_of("/sys/devices/system/cpu/online"));
}

TEST(FlatMachine, HasTheCpusAsCoresAndEverythingEquallyNear) {
  Nic card, veth;
  card.name = "eth0";
  veth.name = "veth0";
  veth.is_virtual = true;
  const Machine m = flat_machine({2, 3, 7}, {veth, card});
  EXPECT_TRUE(m.is_flat);
  EXPECT_EQ(to_text(cpus_of(m)), "2-3,7");
  EXPECT_EQ(m.cores.size(), 3u);
  ASSERT_EQ(m.numa_nodes.size(), 1u);
  EXPECT_EQ(m.numa_nodes[0].cpus, cpus_of(m));
  ASSERT_EQ(m.nics.size(), 2u);
  EXPECT_EQ(m.nics[0].numa_node, 0);
  EXPECT_FALSE(m.nics[1].numa_node.has_value());
  EXPECT_TRUE(m.notes.empty());
}

TEST(ThisMachine, ARecordReadsBackAsItWas) {
  if (hwloc_is_missing()) GTEST_SKIP() << "no hwloc here";
  const fs::path file =
      fs::path(::testing::TempDir()) / ("riffle_machine_" + std::to_string(getpid()) + ".xml");
  const Status written = record_machine(file.string());
  ASSERT_TRUE(written) << written.message();
  const auto again = read_machine_xml(file.string());
  fs::remove(file);
  ASSERT_TRUE(again.is_ok()) << again.status().message();
  const Machine live = read_machine({});
  ASSERT_EQ(again->nics.size(), live.nics.size());
  for (std::size_t i = 0; i < live.nics.size(); ++i) {
    EXPECT_EQ(again->nics[i].name, live.nics[i].name);
    EXPECT_EQ(again->nics[i].speed_mbps, live.nics[i].speed_mbps);
    EXPECT_EQ(again->nics[i].driver, live.nics[i].driver);
    EXPECT_EQ(again->nics[i].is_running, live.nics[i].is_running);
    EXPECT_EQ(again->nics[i].is_virtual, live.nics[i].is_virtual);
  }
  EXPECT_EQ(essence(*again), essence(live));
}

TEST(ThisMachine, AFolderThatCannotBeWritten) {
  if (hwloc_is_missing()) GTEST_SKIP() << "no hwloc here";
  const Status written = record_machine("/nowhere/machine.xml");
  ASSERT_FALSE(written.is_ok());
  EXPECT_NE(written.message().find("/nowhere/machine.xml"), std::string::npos);
}

}  // namespace
}  // namespace riffle::machine_test
