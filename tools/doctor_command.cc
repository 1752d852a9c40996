// `riffle doctor`: would NCCL find, load and use Riffle in this environment?
#include <dlfcn.h>
#include <link.h>
#include <strings.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "lab/nccl_host/tables/plugin_library.h"
#include "plugin/config/config.h"
#include "plugin/entry/options.h"
#include "plugin/entry/transport_options.h"
#include "plugin/transport/device/machine_reading.h"
#include "plugin/transport/device/nic_choice.h"
#include "plugin/transport/device/placement.h"
#include "plugin/version.h"
#include "tools/command.h"
#include "tools/env/nccl_environment.h"
#include "tools/locate.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::tools {
namespace {

// Findings as they come; a problem always has a remedy.
class Findings {
 public:
  void good(const std::string& text) { std::printf("  ok    %s\n", text.c_str()); }
  void note(const std::string& text) { std::printf("  note  %s\n", text.c_str()); }
  void problem(const std::string& text, const std::string& remedy) {
    ++problems_;
    std::printf("  WRONG %s\n        remedy: %s\n", text.c_str(), remedy.c_str());
  }
  int problems() const { return problems_; }

 private:
  int problems_ = 0;
};

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

// As NCCL does it: the value itself from 2.21 on, then libnccl-net-<value>.so. Empty: not found.
std::string path_by_loader(const std::string& value, Findings& findings) {
  std::string reasons;
  for (const std::string& name : {value, "libnccl-net-" + value + ".so"}) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reasons = dlerror();
      continue;
    }
    link_map* map = nullptr;
    std::string path;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) path = map->l_name;
    dlclose(library);
    return path;
  }
  findings.problem("NCCL_NET_PLUGIN=" + value + " is not found by the loader: " + reasons,
                   plugin_folder().empty()
                       ? "add the folder of libnccl-net-riffle.so to LD_LIBRARY_PATH"
                       : "export LD_LIBRARY_PATH=" + plugin_folder());
  return "";
}

std::string check_loading(Findings& findings) {
  const std::string value = environment("NCCL_NET_PLUGIN");
  if (value.empty()) {
    findings.problem("NCCL_NET_PLUGIN is not set: NCCL looks for libnccl-net.so",
                     "export NCCL_NET_PLUGIN=riffle");
    return plugin_file();  // look at what could be loaded
  }
  const std::string path = path_by_loader(value, findings);
  if (path.empty()) return plugin_file();
  findings.good("NCCL_NET_PLUGIN=" + value + " is " + path);
  std::error_code none;
  if (!plugin_file().empty() && !std::filesystem::equivalent(path, plugin_file(), none)) {
    findings.note("that is another file than the one beside this command, " + plugin_file() +
                  "; all nodes must load the same version");
  }
  return path;
}

void check_tables(const std::string& path, Findings& findings) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    findings.problem(path + " does not load: " + dlerror(),
                     "build it on a system with this glibc or an older one");
    return;
  }
  struct Kind {
    const char* prefix;
    int first, last;
  };
  std::string missing;
  int found = 0;
  for (const Kind& kind : {Kind{"ncclNetPlugin_v", 5, 12}, Kind{"ncclCollNetPlugin_v", 5, 12},
                           Kind{"ncclTunerPlugin_v", 1, 6}, Kind{"ncclProfiler_v", 1, 6},
                           Kind{"ncclEnvPlugin_v", 1, 2}}) {
    for (int v = kind.first; v <= kind.last; ++v) {
      const std::string symbol = kind.prefix + std::to_string(v);
      if (dlsym(library, symbol.c_str()))
        ++found;
      else
        missing += " " + symbol;
    }
  }
  dlclose(library);
  if (missing.empty())
    findings.good(std::to_string(found) + " tables, for NCCL 2.12.7 to 2.30");
  else
    findings.problem(path + " lacks" + missing, "it is not Riffle, or an old one: install again");
}

void check_rdma(Findings& findings) {
  const RdmaFinding rdma = find_rdma(rdma_choice(config()));
  if (rdma.text.empty()) {
    return findings.good("no RDMA port that NCCL could use is active: Riffle carries TCP");
  }
  findings.note(rdma.text);
  if (rdma.is_left_to_nccl) {
    findings.note(
        "all nodes must come to the same: NCCL does not compare networks, and where one node has "
        "no "
        "such port the job ends with an error in connect");
  }
}

void check_machine(Findings& findings) {
  const auto begun = std::chrono::steady_clock::now();
  const Machine machine = read_machine(placement::job_mask());
  const auto took = std::chrono::steady_clock::now() - begun;
  if (machine.is_flat) return findings.note(machine.notes.back());
  findings.good("machine: " + std::to_string(machine.cores.size()) + " cores, " +
                std::to_string(machine.numa_nodes.size()) + " NUMA nodes, " +
                std::to_string(machine.gpus.size()) + " GPUs, by " + machine.source);
  if (took > std::chrono::nanoseconds(kMachinePatienceNs)) {
    findings.note("hwloc took " + std::to_string(took / std::chrono::milliseconds(1)) +
                  " ms; a job waits " + std::to_string(kMachinePatienceNs / 1'000'000) +
                  ", then the machine counts as flat there");
  }
}

void check_devices(const std::string& path, Findings& findings) {
  const auto library = host::PluginLibrary::load(path, {12, 12, 6});
  if (!library) return;  // check_tables has said so
  host::NetTable& net = library.value()->net();
  void* context = nullptr;
  int count = 0;
  if (net.init(0x5eed, &context) != host::kSuccess || net.devices(&count) != host::kSuccess ||
      count < 1) {
    findings.problem("NET starts without a device",
                     "see the messages above; RIFFLE_SOCKET_IFNAME names an interface");
    return;
  }
  const Interfaces here = interfaces_of_this_machine();
  const auto nics =
      choose_nics(here.addresses, here.nics, options_from(config()).transport.devices);
  if (nics && !(*nics).left_out.empty()) {
    findings.note("not used: " + to_text((*nics).left_out));
  }
  for (int d = 0; d < count; ++d) {
    host::DeviceProperties p;
    if (net.properties(d, &p) != host::kSuccess) {
      findings.problem("NET device " + std::to_string(d) + " has no properties", "report this");
      continue;
    }
    findings.good("device " + std::to_string(d) + ": " + p.name + ", " +
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

void check_variables(int code, Findings& findings) {
  for (const Export& e : needed_exports(code, "")) {
    const std::string value = environment(e.name);
    if (e.name == "NCCL_NET_PLUGIN") continue;  // check_loading
    const bool plugin = e.name.find("_PLUGIN") != std::string::npos && e.value != "1";
    const bool right = plugin ? value.find("riffle") != std::string::npos : value == e.value;
    if (right)
      findings.good(e.name + "=" + value);
    else
      findings.problem(e.name + (value.empty() ? " is not set" : " is " + value) + ": " + e.why,
                       "export " + e.name + "=" + e.value);
  }
  const std::string net = environment("NCCL_NET");
  if (!net.empty() && strcasecmp(net.c_str(), "riffle") != 0) {
    findings.problem("NCCL_NET=" + net + " selects another network", "unset NCCL_NET");
  }
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    if (!environment(name).empty()) {
      findings.note(std::string(name) + "=" + environment(name) +
                    " restricts what the tuner may choose");
    }
  }
}

void check_fabric(Findings& findings) {
  const std::string path = config().fabric;
  if (path.empty()) {
    findings.note(std::string("RIFFLE_FABRIC is not set: ") +
                  (config().probe == "off" ? "all links count as equal" : "a job measures them"));
    if (!config().rack.empty()) findings.good("RIFFLE_RACK=" + config().rack + " names the rack");
    return;
  }
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const std::string name = config().node_name.empty() ? host : config().node_name;
  const std::vector<NodeAliases> self = {{name}};
  const auto loaded = load_fabric(path, self);
  if (!loaded)
    return findings.problem(loaded.status().message(), "correct the file or unset RIFFLE_FABRIC");
  findings.good("RIFFLE_FABRIC=" + path + ": " + name + " sends " +
                std::to_string(loaded->fabric.nodes[0].out_kbps / 1000) + " Mbit/s");
  for (const std::string& note : loaded->notes) findings.note(note);
}

int diagnose(const std::string& release) {
  Findings findings;
  int code = installed_nccl();
  if (!release.empty()) {
    const auto parsed = parse_release(release);
    if (!parsed) return report(parsed.status());
    code = parsed.value();
  }
  std::printf("riffle %s\nNCCL: %s\n", kVersion,
              code ? release_name(code).c_str() : "release unknown (--nccl): checked for all");
  const std::string path = check_loading(findings);
  if (path.empty()) {
    findings.problem("there is no libnccl-net-riffle.so", "install Riffle, or build riffle_plugin");
  } else {
    check_tables(path, findings);
    check_rdma(findings);
    check_machine(findings);
    check_devices(path, findings);
  }
  check_variables(code, findings);
  check_fabric(findings);
  std::printf("%s\n", findings.problems()
                          ? (std::to_string(findings.problems()) + " problems").c_str()
                          : "no problem");
  return findings.problems() ? kFailed : 0;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto release = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("doctor", "Would NCCL find, load and use Riffle here?");
  sub->add_option("--nccl", *release,
                  "NCCL release; by default that of libnccl.so.2 if there is one");
  sub->footer(
      "Run it in the job's environment, on every node. Exit code 0: no problem; 1: problems.\n"
      "Example: srun riffle doctor --nccl 2.27.5");
  sub->callback([release, &exit_code] { exit_code = diagnose(*release); });
}

}  // namespace riffle::tools
