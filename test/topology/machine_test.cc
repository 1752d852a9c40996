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

// What both readers must agree on.
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

TEST(ThisMachine, HwlocAndSysfsTellTheSame) {
  const auto with_hwloc = read_machine();
  const auto plain = read_machine_sysfs();
  ASSERT_TRUE(plain.is_ok()) << plain.status().message();
  ASSERT_TRUE(with_hwloc.is_ok()) << with_hwloc.status().message();
  EXPECT_FALSE(plain->cores.empty());
  if (hwloc_is_missing()) GTEST_SKIP() << "no hwloc here";
  EXPECT_TRUE(with_hwloc->source.starts_with("hwloc, API 2.")) << with_hwloc->source;
  EXPECT_EQ(essence(*with_hwloc), essence(*plain));
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
  const auto live = read_machine();
  ASSERT_TRUE(live.is_ok());
  ASSERT_EQ(again->nics.size(), live->nics.size());
  for (std::size_t i = 0; i < live->nics.size(); ++i) {
    EXPECT_EQ(again->nics[i].name, live->nics[i].name);
    EXPECT_EQ(again->nics[i].speed_mbps, live->nics[i].speed_mbps);
    EXPECT_EQ(again->nics[i].driver, live->nics[i].driver);
    EXPECT_EQ(again->nics[i].is_running, live->nics[i].is_running);
    EXPECT_EQ(again->nics[i].is_virtual, live->nics[i].is_virtual);
  }
  EXPECT_EQ(essence(*again), essence(*live));
}

TEST(ThisMachine, AFolderThatCannotBeWritten) {
  if (hwloc_is_missing()) GTEST_SKIP() << "no hwloc here";
  const Status written = record_machine("/nowhere/machine.xml");
  ASSERT_FALSE(written.is_ok());
  EXPECT_NE(written.message().find("/nowhere/machine.xml"), std::string::npos);
}

}  // namespace
}  // namespace riffle::machine_test
