// Recorded machines (test/topology/machines) as a job sees them with hwloc and without: the same
// NICs and devices on all, and the same cores where all are equally near the NICs.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "plugin/transport/device/device_choice.h"
#include "plugin/transport/device/nic_choice.h"
#include "plugin/transport/device/placement.h"
#include "topology/host/machine_read.h"

namespace riffle::recorded_machines_test {
namespace {

namespace fs = std::filesystem;

struct Choice {
  std::vector<Device> devices;
  std::string nics, left_out;
  std::string cores;  // and the NUMA node of staging memory
};

// Where hwloc makes a difference: all NICs in use are on one of several NUMA nodes (of grace's two
// one is its GPU's memory).
const std::map<std::string, std::string> kNear = {
    {"bonded", "12-15, node 1"}, {"cloud-ena", "6-11, node 0"}, {"dual-socket", "24-31, node 1"},
    {"grace", "none, node 0"},   {"no-gpu", "22-23, node 5"},   {"plain-export", "24-31, node 1"},
    {"smt-off", "4-7, node 0"},
};
constexpr char kWhereverTheyAre[] = "none";

Choice choice_on(const Machine& machine) {
  std::vector<NicAddress> addresses;
  for (const Nic& nic : machine.nics) {
    if (!nic.is_up) continue;
    addresses.push_back({.interface = nic.name, .address = "10.0.0.1"});
  }
  Choice out;
  const Result<NicChoice> nics = choose_nics(addresses, machine.nics, {});
  if (!nics) return out;
  CoreRequest request{.allowed = cpus_of(machine), .nics = {}};
  for (const NicAddress& a : (*nics).chosen) request.nics.push_back(a.interface);
  for (const std::string& name : request.nics) out.nics += name + " ";
  out.left_out = to_text((*nics).left_out);
  out.devices = make_devices((*nics).chosen, machine.nics, false);
  out.cores = to_text(placement::decide("", request, [&] { return &machine; })->cpus);
  if (const auto node = choose_memory_node(machine, request)) {
    out.cores += ", node " + std::to_string(*node);
  }
  return out;
}

TEST(RecordedMachines, HaveTheSameNicsAndCoresWithAndWithoutHwloc) {
  if (dlopen("libhwloc.so.15", RTLD_LAZY) == nullptr) GTEST_SKIP() << "no hwloc here";
  std::size_t compared = 0, near = 0;
  for (const auto& entry : fs::directory_iterator(RIFFLE_MACHINES)) {
    const fs::path& file = entry.path();
    const std::string name = file.stem().string();
    const bool is_expected_output = name.find('.') != std::string::npos;
    if (file.extension() != ".xml" || is_expected_output || name.starts_with("broken")) continue;
    SCOPED_TRACE(name);
    const Result<Machine> seen = read_machine_xml(file.string());
    ASSERT_TRUE(seen) << seen.status().message();
    const Machine flat = flat_machine(cpus_of(*seen), seen->nics);
    EXPECT_EQ(cpus_of(flat), cpus_of(*seen));
    const Choice with = choice_on(*seen), without = choice_on(flat);
    EXPECT_EQ(with.nics, without.nics);
    EXPECT_EQ(with.left_out, without.left_out);
    ASSERT_EQ(with.devices.size(), without.devices.size());
    for (std::size_t i = 0; i < with.devices.size(); ++i) {
      EXPECT_EQ(with.devices[i].pci_path, without.devices[i].pci_path);
      EXPECT_EQ(with.devices[i].speed_mbps, without.devices[i].speed_mbps);
    }
    const auto expected = kNear.find(name);
    near += expected != kNear.end() ? 1 : 0;
    EXPECT_EQ(with.cores, expected != kNear.end() ? expected->second : kWhereverTheyAre);
    EXPECT_EQ(without.cores, kWhereverTheyAre);
    ++compared;
  }
  EXPECT_GE(compared, 12u);
  EXPECT_EQ(near, kNear.size());
}

}  // namespace
}  // namespace riffle::recorded_machines_test
