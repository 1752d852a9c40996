// RIFFLE_CPUS and what a machine makes of it; and that a thread really moves.
#include "plugin/transport/device/placement.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "plugin/entry/options.h"
#include "plugin/transport/device/numa_memory.h"
#include "plugin/transport/reactor/reactor_thread.h"
#include "topology/base/time.h"
#include "topology/host/machine_read.h"

namespace riffle::placement::placement_test {
namespace {

CpuList range(int first, int last) {
  CpuList cpus;
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return cpus;
}

int asked = 0;

// Two nodes of eight cores, eth0 at the second.
const Machine* two_nodes() {
  ++asked;
  static Machine m;
  m = {};
  for (int node = 0; node < 2; ++node) {
    m.numa_nodes.push_back({.id = node, .processor = node, .cpus = range(8 * node, 8 * node + 7)});
    for (const int cpu : m.numa_nodes.back().cpus) m.cores.push_back({node, node, {cpu}});
  }
  Nic nic;
  nic.name = "eth0";
  nic.numa_node = 1;
  m.nics.push_back(nic);
  return &m;
}

const Machine* a_flat_one() {
  static const Machine m = flat_machine(range(0, 15), {});
  return &m;
}

Decision decided(const std::string& setting, int cpus = 16,
                 const Machine* (*machine)() = two_nodes) {
  asked = 0;
  return decide(setting, {.allowed = range(0, cpus - 1), .nics = {"eth0"}}, machine).value();
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

TEST(Placement, AFlatMachineLeavesAlone) {
  const Decision d = decided("", 16, a_flat_one);
  EXPECT_TRUE(d.cpus.empty());
  EXPECT_EQ(d.why, "the machine counts as flat");
}

TEST(Placement, WhileTheMachineIsReadNothingIsDecidedThatNeedsIt) {
  const auto unknown = []() -> const Machine* { return nullptr; };
  const CoreRequest request{.allowed = range(0, 15), .nics = {"eth0"}};
  EXPECT_FALSE(decide("", request, unknown).has_value());
  EXPECT_EQ(decide("3", request, unknown)->cpus, CpuList{3});
  EXPECT_EQ(decide("none", request, unknown)->why, "RIFFLE_CPUS=none");
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

TEST(Placement, AThreadMovesWhenItsSeatIsKnown) {
  std::atomic<bool> is_known{false};
  auto* const reactor = new ReactorThread(
      [&]() -> std::optional<CpuList> {
        if (!is_known) return {};
        return CpuList{first_cpu()};
      },
      {.bytes = 0, .aside_ns = kMillisecond});
  const auto cpus = [&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    reactor->run_and_wait([&] { sched_getaffinity(0, sizeof mask, &mask); });
    return CPU_COUNT(&mask);
  };
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  EXPECT_EQ(cpus(), CPU_COUNT(&mine));
  is_known = true;
  cpus();  // wakes it
  EXPECT_EQ(cpus(), 1);
  ReactorThread::retire(reactor);
}

// Whether the kernel took the wish, by what it says of the pages.
TEST(NumaMemory, IsPreferredThere) {
  constexpr std::size_t kBytes = 1 << 20;
  void* const at =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  for (const int no_node : {-1, 1023, 5000}) {
    const Status status = prefer_numa_node(no_node, at, kBytes);
    ASSERT_FALSE(status);
    EXPECT_NE(status.message().find("NUMA node " + std::to_string(no_node)), std::string::npos);
  }
  if (const Status status = prefer_numa_node(0, at, kBytes); !status) {
    GTEST_SKIP() << status.message();  // a sandbox
  }
  int mode = -1;
  unsigned long nodes[16] = {};
  ASSERT_EQ(syscall(SYS_get_mempolicy, &mode, nodes, 1024UL, at, MPOL_F_ADDR), 0);
  EXPECT_EQ(mode, MPOL_PREFERRED);
  EXPECT_EQ(nodes[0], 1u);
  munmap(at, kBytes);
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
