// What machine files say of cards and processors, of any text: our conversion makes a machine of it
// that all writers and the choice of cores can take. The frame around it stays well-formed: hwloc's
// own reader does not survive all damage (the command tries files in a child first).
#include <string>
#include <string_view>

#include "test/fuzz/target.h"
#include "test/hwloc_leaks.h"
#include "topology/host/core_choice.h"
#include "topology/host/machine_json.h"
#include "topology/host/machine_read.h"
#include "topology/host/nccl_xml.h"

namespace riffle::fuzz {
namespace {

constexpr std::string_view kMachine = R"(<?xml version="1.0"?>
<topology version="2.0">
<object type="Machine" os_index="0" cpuset="0xf" complete_cpuset="0xf" allowed_cpuset="0xf" nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1"><info name="Architecture" value="@"/>
<object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="2"><info name="CPUVendor" value="@"/><info name="CPUFamilyNumber" value="@"/>
<object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="3" local_memory="1000000000"/>
<object type="Core" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="4"><object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/><object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="6"/></object>
<object type="Bridge" gp_index="7" bridge_type="0-1" depth="0" bridge_pci="0000:[@-@]"><object type="Bridge" gp_index="8" bridge_type="1-1" depth="1" bridge_pci="0000:[11-12]" pci_busid="@:@:@.@" pci_type="@ [@:c030] [1000:0000] b0" pci_link_speed="63.015385">
<object type="PCIDev" gp_index="9" pci_busid="@:@:@.@" pci_type="@ [@:2330] [10de:2330] 00" pci_link_speed="@"><object type="OSDev" gp_index="10" name="@" osdev_type="5"><info name="GPUModel" value="@"/></object></object>
<object type="PCIDev" gp_index="11" pci_busid="@:@:@.@" pci_type="@ [@:1021] [15b3:1021] 00" pci_link_speed="15.753846"><object type="OSDev" gp_index="12" name="@" osdev_type="2"><info name="Address" value="@"/><info name="RiffleState" value="@"/><info name="RiffleSpeedMbps" value="@"/><info name="RiffleDriver" value="@"/><info name="RiffleBondMaster" value="@"/></object></object>
</object></object></object>
<object type="Package" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2" complete_nodeset="0x2" gp_index="13"><object type="NUMANode" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2" complete_nodeset="0x2" gp_index="14" local_memory="1000000000"/><object type="PU" os_index="2" cpuset="0x4" complete_cpuset="0x4" nodeset="0x2" complete_nodeset="0x2" gp_index="15"/><object type="PU" os_index="3" cpuset="0x8" complete_cpuset="0x8" nodeset="0x2" complete_nodeset="0x2" gp_index="16"/></object>
<object type="Misc" name="@" gp_index="17"><info name="RiffleState" value="up"/><info name="RiffleBondMembers" value="@"/><info name="RiffleLower" value="@"/></object>
</object></topology>
)";

// The values for the "@" above, one a line.
constexpr std::string_view kValues =
    "x86_64\nGenuineIntel\n6\n10\n1f\n0000\n10\n01\n0\n0604\n1000\n0000\n11\n00\n0\n0302\n10de\n"
    "31.507692\ncuda0\nH100\n0000\n12\n00\n0\n0200\n15b3\neth0\n02:00:00:00:00:01\nup\n400000\n"
    "mlx5_core\nbond0\nbond0\neth0 eth1\nbond0 eth0\n";

std::string machine_with(std::span<const std::uint8_t> values) {
  std::string out;
  std::size_t at = 0;
  for (const char c : kMachine) {
    if (c != '@') {
      out += c;
      continue;
    }
    for (; at < values.size() && values[at] != '\n'; ++at) {
      const std::uint8_t v = values[at];
      // What would end the attribute is XML's business, not ours.
      if (v >= 0x20 && v < 0x7f && v != '"' && v != '<' && v != '&') out += static_cast<char>(v);
    }
    ++at;
  }
  return out;
}

}  // namespace

std::vector<Bytes> seeds() { return {Bytes(kValues.begin(), kValues.end())}; }

void try_input(std::span<const std::uint8_t> input) {
  const Result<Machine> machine = parse_machine_xml(machine_with(input), "some.xml");
  if (!machine) {
    const std::string& message = machine.status().message();
    require(message.find("some.xml") != std::string::npos ||
                message.find("hwloc: ") != std::string::npos,
            "error without the file: " + message);
    return;
  }
  require(!to_json(*machine).empty(), "no JSON");
  CoreRequest request{.allowed = {0, 1, 2, 3}, .nics = {}, .threads = 1};
  std::vector<NcclNet> nets;
  for (const Nic& nic : machine->nics) {
    request.nics.push_back(nic.name);
    nets.push_back({nic.name, nic.pci_path, nic.speed_mbps.value_or(1)});
    require(!nic.speed_mbps || (*nic.speed_mbps > 0 && *nic.speed_mbps <= kMaxNicSpeedMbps),
            "a speed that cannot be");
  }
  require(to_nccl_xml(*machine, nets).starts_with("<system version=\"1\""), "no NCCL topology");
  const CpuList chosen = choose_cores(*machine, request).cpus;
  require(intersection(chosen, request.allowed) == chosen, "cores outside the mask");
}

}  // namespace riffle::fuzz
