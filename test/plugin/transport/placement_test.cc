// RIFFLE_CPUS and what a machine makes of it; and that a thread really moves.
#include "plugin/transport/device/placement.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

#include "plugin/entry/options.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle::placement::placement_test {
namespace {

CpuList range(int first, int last) {
  CpuList cpus;
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return cpus;
}

int asked = 0;

// Two nodes of eight cores, eth0 at the second.
Result<Machine> two_nodes() {
  ++asked;
  Machine m;
  for (int node = 0; node < 2; ++node) {
    m.numa_nodes.push_back({.id = node, .processor = node, .cpus = range(8 * node, 8 * node + 7)});
    for (const int cpu : m.numa_nodes.back().cpus) m.cores.push_back({node, node, {cpu}});
  }
  Nic nic;
  nic.name = "eth0";
  nic.numa_node = 1;
  m.nics.push_back(nic);
  return m;
}

Result<Machine> no_machine() { return system_error("sysfs is not mounted"); }

Decision decided(const std::string& setting, int cpus = 16,
                 Result<Machine> (*machine)() = two_nodes) {
  asked = 0;
  return decide(setting, {.allowed = range(0, cpus - 1), .nics = {"eth0"}}, machine);
}

TEST(Placement, NearTheNicByDefault) {
  const Decision d = decided("");
  EXPECT_EQ(d.cpus, range(12, 15));
  EXPECT_FALSE(d.is_set);
  EXPECT_EQ(d.warning, "");
  EXPECT_EQ(asked, 1);
}

TEST(Placement, ASettingIsObeyedWithoutALook) {
  const Decision d = decided("2,4-5", 2);
  EXPECT_EQ(d.cpus, (CpuList{2, 4, 5}));
  EXPECT_TRUE(d.is_set);
  EXPECT_EQ(asked, 0);
}

TEST(Placement, NoneLeavesAlone) {
  EXPECT_TRUE(decided("none").cpus.empty());
  EXPECT_EQ(asked, 0);
}

TEST(Placement, SmallMachinesAreNotEvenLookedAt) {
  EXPECT_TRUE(decided("", 2).cpus.empty());
  EXPECT_EQ(asked, 0);
}

TEST(Placement, AWrongSettingNamesItselfAndCountsAsUnset) {
  for (const char* wrong : {"eth0", "4-", "1;2", " "}) {
    const Decision d = decided(wrong);
    EXPECT_EQ(d.cpus, range(12, 15)) << wrong;
    EXPECT_NE(d.warning.find("RIFFLE_CPUS='" + std::string(wrong) + "'"), std::string::npos);
  }
}

TEST(Placement, AnUnreadableMachineIsNoError) {
  const Decision d = decided("", 16, no_machine);
  EXPECT_TRUE(d.cpus.empty());
  EXPECT_EQ(d.why, "sysfs is not mounted");
}

int first_cpu() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 0;
  int first = 0;
  while (!CPU_ISSET(first, &mask)) ++first;
  return first;
}

// Before main(), as the settings are read once.
const bool kSettings = [] {
  ::setenv("RIFFLE_SOCKET_IFNAME", "lo", 1);
  ::setenv("RIFFLE_CPUS", std::to_string(first_cpu()).c_str(), 1);
  return true;
}();

TEST(Placement, TheReactorRunsWhereRiffleCpusSays) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  Reactor::acquire(options_from(config()).transport)->run_and_wait([&] {
    sched_getaffinity(0, sizeof mask, &mask);
  });
  EXPECT_EQ(CPU_COUNT(&mask), 1);
  EXPECT_TRUE(CPU_ISSET(first_cpu(), &mask));
}

TEST(Placement, AThreadMovesOrStays) {
  const int first = first_cpu();
  std::thread([&] {
    move_this_thread({first});
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    EXPECT_EQ(CPU_COUNT(&now), 1);
    EXPECT_TRUE(CPU_ISSET(first, &now));
    move_this_thread({kMaxCpus - 1});  // no such CPU: a log line, and it stays
    ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    EXPECT_TRUE(CPU_ISSET(first, &now));
    move_this_thread({});
    ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    EXPECT_EQ(CPU_COUNT(&now), 1);
  }).join();
}

}  // namespace
}  // namespace riffle::placement::placement_test
