#include "tools/doctor/loading.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tools/env/quoting.h"

namespace riffle::tools {
namespace {

// From which release on a table's variable may be a file, and from which one a name.
struct Table {
  const char* variable;
  const char* kind;
  int takes_files, takes_names;
};
constexpr Table kNet = {"NCCL_NET_PLUGIN", "nccl-net", 22100, 0};
constexpr Table kOthers[] = {{"NCCL_TUNER_PLUGIN", "nccl-tuner", 0, 22100},
                             {"NCCL_PROFILER_PLUGIN", "nccl-profiler", 0, 22600},
                             {"NCCL_ENV_PLUGIN", "nccl-env", 0, 0}};
constexpr const Table& kTuner = kOthers[0];

struct Found {
  std::string path;    // empty: not found
  std::string reason;  // then
};

Found find_by_loader(const Table& table, const std::string& value, int nccl) {
  std::vector<std::string> names;
  if (nccl == 0 || nccl >= table.takes_files) names.push_back(value);
  const bool is_path = !names.empty() && value.find('/') != std::string::npos;
  if (!is_path && (nccl == 0 || nccl >= table.takes_names)) {
    names.push_back(std::string("lib") + table.kind + "-" + value + ".so");
  }
  Found found;
  for (const std::string& name : names) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      found.reason = dlerror();
      continue;
    }
    link_map* map = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) found.path = map->l_name;
    dlclose(library);
    break;
  }
  return found;
}

// What riffle env would set, where that is something else; else the folder is what lacks.
void say_not_found(const Table& table, const std::string& value, const std::string& reason,
                   int nccl, const PluginPlace& beside, Verdicts* verdicts) {
  const std::string text =
      std::string(table.variable) + "=" + value + " is not found by the loader: " + reason;
  const std::vector<Export> needed = needed_exports(nccl, beside);
  const auto own = std::ranges::find(needed, table.variable, &Export::name);
  const auto path = std::ranges::find(needed, "LD_LIBRARY_PATH", &Export::name);
  if (own != needed.end() && own->value != value) {
    verdicts->problem_for_sh(text, "export " + own->name + "=" + sh_word(own->value));
  } else if (path == needed.end()) {
    verdicts->problem(text, "add the folder of libnccl-net-riffle.so to LD_LIBRARY_PATH");
  } else {
    verdicts->problem_for_sh(text, "export " + path->name + "=" +
                                       sh_word(value_over(*path, std::getenv("LD_LIBRARY_PATH"))));
  }
}

std::string check_net(int nccl, const PluginPlace& beside, const JobVariables& variables,
                      Verdicts* verdicts) {
  const std::string value = variables.value(kNet.variable);
  if (value.empty()) {
    const std::vector<Export> needed = needed_exports(nccl, beside);
    const auto own = std::ranges::find(needed, kNet.variable, &Export::name);
    verdicts->problem_for_sh("NCCL_NET_PLUGIN is not set: NCCL looks for libnccl-net.so",
                             "export NCCL_NET_PLUGIN=" + sh_word(own->value));
    return "";
  }
  const std::string first = value.substr(0, value.find(','));  // of a list, which 2.27 takes
  const Found found = find_by_loader(kNet, first, nccl);
  if (found.path.empty()) {
    say_not_found(kNet, first, found.reason, nccl, beside, verdicts);
    return "";
  }
  verdicts->good(variables.said(kNet.variable) + " is " + found.path);
  std::error_code none;
  if (!beside.file.empty() && !std::filesystem::equivalent(found.path, beside.file, none)) {
    verdicts->note("that is another file than the one beside this command, " + beside.file +
                   "; all nodes must load the same version");
  }
  return found.path;
}

// A copy that follows links makes several files of one, each with a state of its own.
void check_same_file(const Table& table, const std::string& net, int nccl,
                     const PluginPlace& beside, bool has_collectives, const JobVariables& variables,
                     Verdicts* verdicts) {
  const std::string value = variables.value(table.variable);
  if (value.empty()) return;  // check_nccl_variables says whether it has to be set
  const Found found = find_by_loader(table, value, nccl);
  if (found.path.empty()) {
    return say_not_found(table, value, found.reason, nccl, beside, verdicts);
  }
  std::error_code none;
  if (net.empty() || std::filesystem::equivalent(found.path, net, none)) {
    return verdicts->good(variables.said(table.variable));
  }
  if (&table == &kTuner && !has_collectives) {
    return verdicts->note(variables.said(table.variable) + " is " + found.path +
                          ", which chooses how all-reduces run that stay with NCCL");
  }
  verdicts->problem(variables.said(table.variable) + " is " + found.path + ", another file than " +
                        net + ": the tables would share no state",
                    "make it a link to libnccl-net-riffle.so, as an installation has it (cp -a, "
                    "not cp -L)");
}

}  // namespace

std::string check_loading(int nccl, const PluginPlace& beside, bool has_collectives,
                          const JobVariables& variables, Verdicts* verdicts) {
  const std::string net = check_net(nccl, beside, variables, verdicts);
  for (const Table& table : kOthers) {
    check_same_file(table, net, nccl, beside, has_collectives, variables, verdicts);
  }
  return net.empty() ? beside.file : net;  // look at what could be loaded
}

void check_tables(const std::string& path, Verdicts* verdicts) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return verdicts->problem(path + " does not load: " + dlerror(),
                             "build it on a system with this glibc or an older one");
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
      if (dlsym(library, symbol.c_str()) != nullptr) {
        ++found;
      } else {
        missing += " " + symbol;
      }
    }
  }
  dlclose(library);
  if (missing.empty()) {
    verdicts->good(std::to_string(found) + " tables, for NCCL 2.12.7 to 2.30");
  } else {
    verdicts->problem(path + " lacks" + missing, "it is not Riffle, or an old one: install again");
  }
}

}  // namespace riffle::tools
