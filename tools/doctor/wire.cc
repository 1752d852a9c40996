#include "tools/doctor/wire.h"

#include <dlfcn.h>

#include <algorithm>

#include "plugin/entry/transport_options.h"
#include "plugin/transport/nccl_net/library.h"
#include "tools/doctor/nccl_release.h"

namespace riffle::tools {
namespace {

constexpr int kTakesLists = 22703;  // NCCL_NET_PLUGIN

bool has_table_for(const nccl_net::Library& library, int newest) {
  return std::any_of(library.nets.begin(), library.nets.begin() + newest + 1,
                     [](const void* table) { return table != nullptr; });
}

// An address in the shared object that must not be loaded as its own wire.
const void* address_in(const std::string& plugin) {
  void* const library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : dlsym(library, "ncclNetPlugin_v12");
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
  if (!has_table_for(*library, newest)) {
    return fail("RIFFLE_NET=" + choice.name + ": " + library->path + " has NET " +
                library->versions() + ", this NCCL reads v" + std::to_string(newest) +
                " and older");
  }
  verdicts->good("RIFFLE_NET=" + choice.name + " is " + library->path + ", NET " +
                 library->versions());
  say_what_becomes_of_collectives(c, verdicts);
  return true;
}

}  // namespace riffle::tools
