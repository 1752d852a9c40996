// Which plugin the tests of this folder drive, and how they run it on several ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "lab/nccl_host/communicator.h"
#include "lab/nccl_host/launcher.h"

namespace riffle::host {

// Empty: none was built.
inline std::string plugin_path() {
  if (const char* path = std::getenv("RIFFLE_TEST_PLUGIN")) return path;
#ifdef RIFFLE_PLUGIN_PATH
  return RIFFLE_PLUGIN_PATH;
#else
  return "";
#endif
}

// Settings for ranks on one machine: the plugin takes loopback only when told to, and would fall
// back to the ring there (which it may: the tests want to see CollNet).
inline void set_plugin_environment() {
  setenv("RIFFLE_SOCKET_IFNAME", "lo", 0);
  setenv("RIFFLE_COLLNET", "on", 0);
}

// Runs `body` on `ranks` processes, each with a communicator, and expects success
// everywhere.
inline Status run_ranks(int ranks, const TableVersions& versions, const Options& options,
                        const std::function<Status(Communicator&, Bootstrap&)>& body) {
  LaunchOptions launch_options;
  launch_options.ranks = ranks;
  launch_options.deadline_ms = 100000;
  return all_succeeded(launch(launch_options, [&](Bootstrap& bootstrap) -> Status {
    set_plugin_environment();
    auto library = PluginLibrary::load(plugin_path(), versions);
    if (!library) return library.status();
    auto comm = Communicator::create(**library, bootstrap, options);
    if (!comm) return comm.status();
    if (Status s = body(**comm, bootstrap); !s) return s;
    return (*comm)->destroy();
  }));
}

}  // namespace riffle::host

#define RIFFLE_NEEDS_PLUGIN() \
  if (::riffle::host::plugin_path().empty()) FAIL() << "no plugin was built"
