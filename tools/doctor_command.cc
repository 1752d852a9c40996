// `riffle doctor`: would NCCL find, load and use Riffle in this environment?
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "lab/nccl_host/tables/plugin_library.h"
#include "plugin/config/config.h"
#include "plugin/config/log.h"
#include "plugin/entry/transport_options.h"
#include "plugin/transport/device/machine_reading.h"
#include "plugin/transport/device/placement.h"
#include "plugin/version.h"
#include "tools/command.h"
#include "tools/doctor/job_variables.h"
#include "tools/doctor/knobs.h"
#include "tools/doctor/loading.h"
#include "tools/doctor/nccl_variables.h"
#include "tools/locate.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::tools {
namespace {

// True: the network is left to NCCL.
bool check_rdma(Verdicts& verdicts) {
  const RdmaFinding rdma = find_rdma(rdma_choice(config()));
  if (rdma.text.empty()) {
    verdicts.good("no RDMA port that NCCL could use is active: Riffle carries TCP");
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

// The release of an NCCL that the loader finds here; 0: none.
int installed_nccl() {
  void* library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return 0;
  int code = 0;
  auto* get = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  if (get == nullptr || get(&code) != 0) return 0;
  return code;
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

struct Choice {
  std::string release;
  bool is_json = false, only_fixes = false;
};

void print(const Verdicts& verdicts, const std::string& nccl, const Choice& choice) {
  if (choice.only_fixes) {
    std::fputs(verdicts.fixes().c_str(), stdout);
  } else if (choice.is_json) {
    nlohmann::ordered_json found = {{"schema", "riffle-doctor-1"},
                                    {"version", kVersion},
                                    {"nccl", nccl},
                                    {"problems", verdicts.problems()},
                                    {"verdicts", nlohmann::ordered_json::array()}};
    for (const Verdicts::Verdict& v : verdicts.all()) {
      const char* kind = v.kind == Verdicts::Kind::kGood   ? "ok"
                         : v.kind == Verdicts::Kind::kNote ? "note"
                                                           : "problem";
      found["verdicts"].push_back({{"kind", kind}, {"text", v.text}, {"remedy", v.remedy}});
    }
    std::printf("%s\n",
                found.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("riffle %s\nNCCL: %s\n%s", kVersion, nccl.c_str(), verdicts.text().c_str());
  }
}

void say_nothing(int, unsigned long, const char*, int, const char*, ...) {}

int diagnose(const Choice& choice) {
  // What settings are wrong is said here, once: neither by this command's log nor by the plugin's.
  set_logger(say_nothing);
  setenv("NCCL_DEBUG", "NONE", 0);
  Verdicts verdicts;
  const JobVariables variables(&verdicts);
  int code = installed_nccl();
  if (!choice.release.empty()) {
    const auto parsed = parse_release(choice.release);
    if (!parsed) return report(parsed.status());
    code = parsed.value();
  }
  const PluginPlace beside = plugin_place();
  const std::string path = check_loading(code, beside, variables, &verdicts);
  const bool is_left_to_nccl = check_rdma(verdicts);
  check_machine(verdicts);
  const std::vector<std::string> addresses = check_interfaces(config(), variables, &verdicts);
  if (path.empty()) {
    verdicts.problem("there is no libnccl-net-riffle.so", "install Riffle, or build riffle_plugin");
  } else {
    check_tables(path, &verdicts);
    if (!addresses.empty() && !is_left_to_nccl) check_devices(path, verdicts);
  }
  check_nccl_variables(code, beside, variables, &verdicts);
  const NodeAliases self = names_of_this_node(addresses);
  check_fabric(self, verdicts);
  check_knobs(config(), self, variables, &verdicts);
  print(verdicts,
        code != 0 ? release_name(code) : "release unknown (--nccl): checked for the newest",
        choice);
  return verdicts.problems() != 0 ? kFailed : 0;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto choice = std::make_shared<Choice>();
  CLI::App* sub = app.add_subcommand("doctor", "Would NCCL find, load and use Riffle here?");
  sub->add_option("--nccl", choice->release,
                  "NCCL release; by default that of libnccl.so.2 if there is one");
  sub->add_flag("--json", choice->is_json, "JSON, schema riffle-doctor-1");
  sub->add_flag("--fix", choice->only_fixes, "Only the lines of sh that set things right")
      ->excludes("--json");
  sub->footer(
      "Run it in the job's environment, on every node. NCCL's own files of settings count, too.\n"
      "Exit code 0: no problem; 1: problems; 2: wrong usage.\n"
      "Examples: srun riffle doctor --nccl 2.27.5\n"
      "          eval \"$(riffle doctor --fix)\"");
  sub->callback([choice, &exit_code] { exit_code = diagnose(*choice); });
}

}  // namespace riffle::tools
