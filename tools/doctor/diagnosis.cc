#include "tools/doctor/diagnosis.h"

#include <unistd.h>

#include <chrono>

#include "lab/nccl_host/tables/plugin_library.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"
#include "plugin/entry/transport_options.h"
#include "plugin/transport/device/machine_reading.h"
#include "plugin/transport/device/placement.h"
#include "tools/doctor/encryption.h"
#include "tools/doctor/job_variables.h"
#include "tools/doctor/kernel.h"
#include "tools/doctor/knobs.h"
#include "tools/doctor/loading.h"
#include "tools/doctor/loop.h"
#include "tools/doctor/nccl_library.h"
#include "tools/doctor/nccl_variables.h"
#include "tools/doctor/wire.h"
#include "tools/env/nccl_environment.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::tools {
namespace {

// True: the network is left to NCCL.
bool check_rdma(Verdicts& verdicts) {
  const RdmaFinding rdma = find_rdma(rdma_choice(config()));
  if (rdma.text.empty()) {
    verdicts.good("no RDMA port is active: Riffle carries TCP");
    return false;
  }
  verdicts.note(rdma.text);
  if (rdma.is_left_to_nccl) {
    verdicts.note(
        "all nodes must come to the same: NCCL does not compare networks, and where one node has "
        "no such port the job ends with an error in connect");
  }
  return rdma.is_left_to_nccl;
}

void check_machine(Verdicts& verdicts) {
  const auto begun = std::chrono::steady_clock::now();
  const Machine machine = read_machine(placement::job_mask());
  const auto took = std::chrono::steady_clock::now() - begun;
  if (machine.is_flat) return verdicts.note(machine.notes.back());
  verdicts.good("machine: " + std::to_string(machine.cores.size()) + " cores, " +
                std::to_string(machine.numa_nodes.size()) + " NUMA nodes, " +
                std::to_string(machine.gpus.size()) + " GPUs, by " + machine.source);
  if (took > std::chrono::nanoseconds(kMachinePatienceNs)) {
    verdicts.note("hwloc took " + std::to_string(took / std::chrono::milliseconds(1)) +
                  " ms; a job waits " + std::to_string(kMachinePatienceNs / 1'000'000) +
                  ", then the machine counts as flat there");
  }
}

void check_devices(const std::string& path, Verdicts& verdicts) {
  const auto library = host::PluginLibrary::load(path, {12, 12, 6});
  if (!library) return;  // check_tables has said so
  host::NetTable& net = library.value()->net();
  void* context = nullptr;
  int count = 0;
  if (net.init(0x5eed, &context) != host::kSuccess || net.devices(&count) != host::kSuccess ||
      count < 1) {
    verdicts.problem("NET starts without a device",
                     "NCCL_DEBUG=INFO says why; RIFFLE_SOCKET_IFNAME names an interface");
    return;
  }
  for (int d = 0; d < count; ++d) {
    host::DeviceProperties p;
    if (net.properties(d, &p) != host::kSuccess) {
      verdicts.problem("NET device " + std::to_string(d) + " has no properties", "report this");
      continue;
    }
    verdicts.good("device " + std::to_string(d) + ": " + p.name + ", " +
                  std::to_string(p.speed_mbps) + " Mbit/s" +
                  (p.pci_path.empty() ? "" : ", " + p.pci_path));
  }
  (void)net.finalize(context);
}

// As nodes tell each other their names in connect.
NodeAliases names_of_this_node(const std::vector<std::string>& addresses) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  NodeAliases names = {host};
  if (!config().node_name.empty()) names.insert(names.begin(), config().node_name);
  names.insert(names.end(), addresses.begin(), addresses.end());
  return names;
}

void check_fabric(const NodeAliases& self, Verdicts& verdicts) {
  const std::string path = config().fabric;
  if (path.empty()) {
    verdicts.note(std::string("RIFFLE_FABRIC is not set: ") +
                  (config().probe == "off" ? "all links count as equal" : "a job measures them"));
    if (!config().rack.empty()) verdicts.good("RIFFLE_RACK=" + config().rack + " names the rack");
    return;
  }
  const auto loaded = load_fabric(path, std::vector<NodeAliases>{self});
  if (!loaded)
    return verdicts.problem(loaded.status().message(), "correct the file, or unset RIFFLE_FABRIC");
  verdicts.good("RIFFLE_FABRIC=" + path + ": " + self.front() + " sends " +
                std::to_string(loaded->fabric.nodes[0].out_kbps / 1000) + " Mbit/s");
  for (const std::string& note : loaded->notes) verdicts.note(note);
}

void say_nothing(int, unsigned long, const char*, int, const char*, ...) {}

}  // namespace

Result<Diagnosis> diagnose(const DoctorQuestion& question) {
  // What settings are wrong is said here, once: neither by this command's log nor by the plugin's.
  set_logger(say_nothing);
  setenv("NCCL_DEBUG", "NONE", 0);
  Diagnosis found;
  Verdicts& verdicts = found.verdicts;
  const JobVariables variables(&verdicts);
  reload_config();  // with what NCCL's files say
  const auto asked = parse_release(question.release);
  if (!asked) return asked.status();
  const int code = check_nccl(find_nccl(question.beside), *asked, &verdicts);
  if (code != 0) found.nccl = release_name(code);
  const bool has_collectives =
      wire_choice(config()).name.empty() || config().collnet == "on" || config().collnet == "tcp";
  found.plugin = check_loading(code, question.beside, has_collectives, variables, &verdicts);
  const bool has_wire = check_wire(config(), found.plugin, code, variables, &verdicts);
  if (has_wire)
    setenv("RIFFLE_NET", config().net.c_str(), 1);  // from a file, too, for check_devices
  const bool is_left_to_nccl = !has_wire && check_rdma(verdicts);
  found.network = has_wire          ? config().net
                  : is_left_to_nccl ? "left to NCCL for RDMA"
                                    : "Riffle's TCP";
  const bool is_refused = !check_encryption(config(), &verdicts);
  check_machine(verdicts);
  check_kernel(config(), &verdicts);
  const NicsInUse nics = check_interfaces(config(), variables, &verdicts);
  found.mtu = nics.mtu;
  // Before the plugin is loaded: the host that loads it here sets what it needs itself.
  check_nccl_variables(code, question.beside, has_collectives, variables, &verdicts);
  if (found.plugin.empty()) {
    verdicts.problem("there is no libnccl-net-riffle.so", "install Riffle, or build riffle_plugin");
  } else {
    check_tables(found.plugin, &verdicts);
    if (question.has_loop && !is_refused) check_loop(found.plugin, &verdicts);
    if ((has_wire || !nics.addresses.empty()) && !is_left_to_nccl && !is_refused) {
      check_devices(found.plugin, verdicts);
    }
  }
  const NodeAliases self = names_of_this_node(nics.addresses);
  check_fabric(self, verdicts);
  check_knobs(config(), self, variables, &verdicts);
  return found;
}

}  // namespace riffle::tools
