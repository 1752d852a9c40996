// `riffle topo`: this machine (or a recorded one) and the network, as Riffle sees them.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "plugin/config/config.h"
#include "tools/command.h"
#include "tools/fabric_source.h"
#include "tools/output_file.h"
#include "tools/terminal/terminal.h"
#include "tools/topo/drawing.h"
#include "tools/topo/json.h"
#include "tools/topo/text.h"
#include "tools/topo/trial.h"
#include "topology/host/machine_read.h"
#include "topology/host/nccl_xml.h"

namespace riffle::tools {
namespace {

struct TopoArguments {
  std::string hwloc_xml, fabric, svg, nccl_xml, record;
  bool json = false;
};

// What Riffle shows NCCL, and every other card under the name that NCCL's own sockets give it.
std::vector<NcclNet> nccl_nets(const topo::View& view) {
  std::vector<NcclNet> nets;
  for (const Device& device : view.devices) {
    nets.push_back({device.name, device.pci_path, device.speed_mbps, true});
  }
  for (const Nic& nic : view.machine.nics) {
    if (nic.is_virtual || !nic.is_running) continue;
    bool is_there = false;
    for (const NcclNet& net : nets) is_there = is_there || net.name == nic.name;
    if (!is_there) nets.push_back({nic.name, nic.pci_path, nic.speed_mbps.value_or(10'000), false});
  }
  return nets;
}

Result<topo::View> look(const TopoArguments& options) {
  if (options.hwloc_xml.empty()) return topo::view_of_this_machine();
  if (Status s = topo::try_machine_file(options.hwloc_xml); !s) return s;
  Result<Machine> machine = read_machine_xml(options.hwloc_xml);
  if (!machine) return machine.status();
  return topo::view_of(std::move(*machine),
                       std::filesystem::path(options.hwloc_xml).filename().string());
}

int run(const TopoArguments& options) {
  if (!options.record.empty()) {
    if (!options.hwloc_xml.empty()) {
      return report(invalid_argument("--record writes this machine: it goes without --hwloc-xml"));
    }
    if (Status s = record_machine(options.record); !s) return report(s);
  }
  Result<topo::View> view = look(options);
  if (!view) return report(view.status());
  const std::string fabric = options.fabric.empty() ? config().fabric : options.fabric;
  if (!fabric.empty()) {
    Result<Fabric> read = read_fabric({.file = fabric, .profile = {}, .nodes = {}}, "topo");
    if (read) {
      view->fabric = std::move(*read);
      view->fabric_name = fabric;
    } else if (!options.fabric.empty()) {
      return report(read.status());
    } else {
      view->advice.push_back("RIFFLE_FABRIC: " + read.status().message());
    }
  }
  const auto put = [&](const std::string& path, const std::string& text) {
    return path.empty() ? Status::ok() : write_file(path, text);
  };
  if (!options.nccl_xml.empty() && view->machine.is_flat) {
    return report(system_error("--nccl-xml: " + view->machine.notes.back()));
  }
  if (Status s = put(options.svg, topo::to_svg(*view)); !s) return report(s);
  if (Status s = put(options.nccl_xml, to_nccl_xml(view->machine, nccl_nets(*view))); !s) {
    return report(s);
  }
  const std::string text =
      options.json ? topo::to_json(*view) : topo::to_text(*view, Colours(stdout));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

void add_topo(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TopoArguments>();
  CLI::App* sub = app.add_subcommand(
      "topo", "This machine and the network: NICs, GPUs, distances, what Riffle uses and why");
  sub->add_flag("--json", o->json, "Everything as JSON");
  sub->add_option("--svg", o->svg, "Also write a drawing");
  sub->add_option("--nccl-xml", o->nccl_xml, "Also write NCCL's topology file (NCCL_TOPO_FILE)");
  sub->add_option("--hwloc-xml", o->hwloc_xml,
                  "A recorded machine instead of this one (--record, or lstopo --of xml)");
  sub->add_option("--record", o->record, "Also write this machine as a file for --hwloc-xml");
  sub->add_option("--fabric", o->fabric, "Fabric file to show; RIFFLE_FABRIC by default");
  sub->footer(
      "Examples:\n"
      "  riffle topo                              what is here, what carries the traffic\n"
      "  riffle topo --svg node.svg               the same as a drawing\n"
      "  riffle topo --fabric cluster.toml        with the racks and uplinks of the network\n"
      "  riffle topo --nccl-xml t.xml && NCCL_TOPO_FILE=t.xml torchrun ...\n"
      "  riffle topo --record node.xml            to look at it elsewhere:\n"
      "  riffle topo --hwloc-xml node.xml\n"
      "Exit code: 0 shown, 1 this machine cannot be read or a file not be written, 2 wrong usage\n"
      "or a file that makes no sense.");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools
