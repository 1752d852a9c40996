// topology/host/core_choice.h: which cores progress threads get, and when they get none.
#include "topology/host/core_choice.h"

#include <gtest/gtest.h>

#include "topology/host/machine_read.h"

namespace riffle::core_choice_test {
namespace {

CpuList cpus(const char* text) { return parse_cpu_list(text).value(); }

// `nodes` NUMA nodes of `cores` cores; with two threads the second ones follow all first ones.
// eth<n> sits on node n.
Machine machine(int nodes, int cores, int threads = 1) {
  Machine m;
  for (int node = 0; node < nodes; ++node) {
    NumaNode numa{.id = node, .processor = node, .cpus = {}};
    for (int c = node * cores; c < (node + 1) * cores; ++c) {
      Core core{.processor = node, .numa_node = node, .cpus = {}};
      for (int t = 0; t < threads; ++t) core.cpus.push_back(c + t * nodes * cores);
      numa.cpus.insert(numa.cpus.end(), core.cpus.begin(), core.cpus.end());
      m.cores.push_back(core);
    }
    m.numa_nodes.push_back(numa);
    Nic nic;
    nic.name = "eth" + std::to_string(node);
    nic.numa_node = node;
    m.nics.push_back(nic);
  }
  tidy(m);
  return m;
}

std::string chosen(const Machine& m, const char* allowed, std::vector<std::string> nics,
                   int threads = 1) {
  const CoreChoice choice =
      choose_cores(m, {.allowed = cpus(allowed), .nics = std::move(nics), .threads = threads});
  EXPECT_FALSE(choice.reason.empty());
  return to_text(choice.cpus);
}

TEST(CoreChoice, TheLastHalfOfTheNicsNode) {
  EXPECT_EQ(chosen(machine(2, 16), "0-31", {"eth1"}), "24-31");
  EXPECT_EQ(chosen(machine(2, 16), "0-31", {"eth0"}), "8-15");
  EXPECT_EQ(chosen(machine(4, 4), "0-15", {"eth2"}), "10-11");
}

TEST(CoreChoice, OneHardwareThreadPerCore) {
  EXPECT_EQ(chosen(machine(2, 16, 2), "0-63", {"eth1"}), "24-31");
  // A job on the second threads only keeps to them.
  EXPECT_EQ(chosen(machine(2, 16, 2), "32-63", {"eth0"}), "40-47");
}

TEST(CoreChoice, NeverOutsideTheMask) {
  EXPECT_EQ(chosen(machine(2, 16), "4-19", {"eth1"}), "18-19");
  EXPECT_EQ(chosen(machine(2, 16), "0-16", {"eth1"}), "16");
}

TEST(CoreChoice, RoomForAllThreads) {
  EXPECT_EQ(chosen(machine(2, 8), "0-15", {"eth1"}, 6), "10-15");
  EXPECT_EQ(chosen(machine(2, 8), "0-15", {"eth1"}, 16), "8-15");
}

TEST(CoreChoice, SmallMasksAreLeftAlone) {
  EXPECT_EQ(chosen(machine(2, 16), "12-18", {"eth1"}), "none");
  EXPECT_EQ(chosen(machine(2, 1), "0-1", {"eth1"}), "none");
  // Eight hardware threads are four cores.
  EXPECT_EQ(chosen(machine(2, 4, 2), "0-1,4-5,8-9,12-13", {"eth1"}), "none");
}

TEST(CoreChoice, NothingToWinNothingChosen) {
  EXPECT_EQ(chosen(machine(1, 16), "0-15", {"eth0"}), "none");
  EXPECT_EQ(chosen(machine(2, 16), "0-15", {"eth0"}), "none");  // the launcher did it already
  EXPECT_EQ(chosen(machine(2, 16), "0-31", {"eth0", "eth1"}), "none");
}

TEST(MemoryNode, IsTheNicsWhereTheJobHasCores) {
  const auto node = [](const Machine& m, const char* allowed, std::vector<std::string> nics) {
    return choose_memory_node(m, {.allowed = cpus(allowed), .nics = std::move(nics)}).value_or(-1);
  };
  EXPECT_EQ(node(machine(2, 4), "0-7", {"eth1"}), 1);
  EXPECT_EQ(node(machine(2, 4), "7", {"eth1"}), 1);     // one core is enough
  EXPECT_EQ(node(machine(2, 4), "0-3", {"eth1"}), -1);  // its threads run elsewhere
  EXPECT_EQ(node(machine(1, 4), "0-3", {"eth0"}), -1);  // there is no other
  EXPECT_EQ(node(machine(2, 4), "0-7", {"eth0", "eth1"}), -1);
  EXPECT_EQ(node(machine(2, 4), "0-7", {"eth7"}), -1);
  EXPECT_EQ(node(flat_machine(cpus("0-7"), machine(2, 4).nics), "0-7", {"eth1"}), -1);
}

TEST(CoreChoice, UnknownPlacesAreLeftAlone) {
  EXPECT_EQ(chosen(machine(2, 16), "0-31", {"eth7"}), "none");
  EXPECT_EQ(chosen(machine(2, 16), "0-31", {}), "none");
  EXPECT_EQ(chosen(machine(2, 16), "", {"eth0"}), "none");
  EXPECT_EQ(chosen({}, "0-31", {"eth0"}), "none");
  EXPECT_EQ(chosen(machine(2, 16), "100-200", {"eth0"}), "none");
}

TEST(CoreChoice, OthersCoresAreNotOurs) {
  EXPECT_EQ(chosen(machine(2, 16), "0-15", {"eth1"}), "none");
}

TEST(CoreChoice, ABondIsWhereItsMembersAre) {
  Machine m = machine(4, 4);
  Nic bond;
  bond.name = "bond0";
  bond.is_virtual = true;
  bond.bond_members = {"eth2", "eth3"};
  m.nics.push_back(bond);
  EXPECT_EQ(chosen(m, "0-15", {"bond0"}), "12-15");
}

TEST(ShareOfThread, OneEachWhereThereAreEnough) {
  EXPECT_EQ(share_of_thread(cpus("2,4-7"), 0, 1), cpus("2,4-7"));
  EXPECT_EQ(share_of_thread(cpus("2,4-7"), 0, 2), cpus("2,5,7"));
  EXPECT_EQ(share_of_thread(cpus("2,4-7"), 1, 2), cpus("4,6"));
  EXPECT_EQ(share_of_thread(cpus("2"), 1, 2), cpus("2"));
}

}  // namespace
}  // namespace riffle::core_choice_test
