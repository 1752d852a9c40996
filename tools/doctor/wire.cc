#include "tools/doctor/wire.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "plugin/entry/transport_options.h"
#include "plugin/transport/nccl_net/library.h"
#include "tools/doctor/nccl_release.h"

namespace riffle::tools {
namespace {

constexpr int kTakesLists = 22703;  // NCCL_NET_PLUGIN
// From which release on NCCL has them; before their own variables, it takes those of NET's library,
// and RMA's of GIN's. (src/plugin of NCCL 2.28.3 to 2.30.7)
constexpr int kHasGin = 22803, kHasGinPlugin = 22907;
constexpr int kHasRma = 23003, kHasRmaPlugin = 23007;
constexpr int kNewestTable = 20;  // more than there are

bool has_table_for(const nccl_net::Library::Tables& tables, int newest) {
  return std::any_of(tables.begin(), tables.begin() + newest + 1,
                     [](const void* table) { return table != nullptr; });
}

// An address in the shared object that must not be loaded as its own wire.
const void* address_in(const std::string& plugin) {
  void* const library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, "ncclNetPlugin_v12");
}

bool has_table(void* library, std::string_view prefix) {
  for (int v = 1; v <= kNewestTable; ++v) {
    if (dlsym(library, (std::string(prefix) + std::to_string(v)).c_str()) != nullptr) return true;
  }
  return false;
}

// Tables beside NET are found by name in the same file; NCCL looks for them in Riffle's alone.
void say_what_is_not_passed_on(const std::string& path, bool has_collectives, int nccl,
                               const JobVariables& variables, Verdicts* verdicts) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto since = [&](int release) { return nccl == 0 || nccl >= release; };
  const auto say = [&](const std::string& what, const std::string& remedy) {
    verdicts->note(path + " has " + what + ", which Riffle does not pass on: " + remedy);
  };
  const std::string whole = "a job that needs it sets NCCL_NET_PLUGIN=" + path + ", without Riffle";
  const auto own = [&](const std::string& variable) {
    return "a job that needs it sets " + variable + "=" + path;
  };
  if (has_table(library, "ncclGinPlugin_v") && since(kHasGin)) {
    say("GIN", since(kHasGinPlugin) ? own("NCCL_GIN_PLUGIN") : whole);
  }
  if (has_table(library, "ncclRmaPlugin_v") && since(kHasRma)) {
    say("RMA", own(since(kHasRmaPlugin) ? "NCCL_RMA_PLUGIN" : "NCCL_GIN_PLUGIN"));
  }
  if (!has_collectives && has_table(library, "ncclTunerPlugin_v") &&
      variables.value("NCCL_TUNER_PLUGIN") != path) {
    say("a tuner", "NCCL_TUNER_PLUGIN=" + path + " takes it while all-reduces stay with NCCL");
  }
  dlclose(library);
}

void say_what_becomes_of_collnet(const std::string& path, const Config& c, Verdicts* verdicts) {
  if (c.collnet == "auto") {
    verdicts->note(path +
                   " has COLLNET, which Riffle passes on: NCCL may use it where "
                   "NCCL_COLLNET_ENABLE=1; RIFFLE_COLLNET=off keeps it out");
  } else {
    verdicts->note(path + " has COLLNET, which RIFFLE_COLLNET=" + c.collnet +
                   " keeps out; auto passes it on");
  }
}

void say_what_becomes_of_collectives(const Config& c, Verdicts* verdicts) {
  const std::string host =
      ", from and to host memory: NCCL then takes its devices for ones without GPUDirect, for NET, "
      "too";
  if (c.collnet == "on") {
    verdicts->note("RIFFLE_COLLNET=on: all-reduces take connections of that library" + host);
  } else if (c.collnet == "tcp") {
    verdicts->note("RIFFLE_COLLNET=tcp: all-reduces take Riffle's TCP beside that library" + host);
  } else {
    verdicts->note(
        "all-reduces stay with NCCL over that library; RIFFLE_COLLNET=on carries them in group "
        "plans over that library's connections, RIFFLE_COLLNET=tcp over Riffle's TCP");
  }
}

}  // namespace

bool check_wire(const Config& c, const std::string& plugin, int nccl, const JobVariables& variables,
                Verdicts* verdicts) {
  const nccl_net::LibraryChoice choice = wire_choice(c);
  if (choice.name.empty()) return false;
  const auto fail = [&](const std::string& text) {
    variables.problem_unless_unset("RIFFLE_NET", text, verdicts);
    return true;
  };
  if (choice.name == "next" && nccl != 0 && nccl < kTakesLists) {
    return fail("RIFFLE_NET=next: this NCCL takes no list in NCCL_NET_PLUGIN, 2.27.3 and later do");
  }
  const auto library = nccl_net::open_library(choice, address_in(plugin));
  if (!library) return fail(library.status().message());
  const int newest = tables_read(nccl).net;
  if (!has_table_for(library->nets, newest)) {
    return fail("RIFFLE_NET=" + choice.name + ": " + library->path + " has NET " +
                library->versions() + ", this NCCL reads v" + std::to_string(newest) +
                " and older");
  }
  verdicts->good("RIFFLE_NET=" + choice.name + " is " + library->path + ", NET " +
                 library->versions());
  say_what_becomes_of_collectives(c, verdicts);
  const bool has_collectives = c.collnet == "on" || c.collnet == "tcp";
  if (has_table_for(library->collnets, newest)) {
    say_what_becomes_of_collnet(library->path, c, verdicts);
  }
  say_what_is_not_passed_on(library->path, has_collectives, nccl, variables, verdicts);
  return true;
}

}  // namespace riffle::tools
