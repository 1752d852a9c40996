#include "bench/peers/plugin_process.h"

#include <sys/prctl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lab/nccl_host/launcher.h"
#include "plugin/transport/device/placement.h"
#include "topology/host/core_choice.h"

namespace riffle::bench {
namespace {

constexpr int kDayMs = 24 * 3600 * 1000;  // the bench has its own deadlines

void set_environment(const Site& site) {
  if (!site.fabric.empty()) setenv("RIFFLE_FABRIC", site.fabric.c_str(), 0);
  if (!site.cluster) {
    setenv("RIFFLE_SOCKET_IFNAME", "=lo", 0);
    setenv("RIFFLE_COLLNET", "on", 0);  // auto would rightly fall back to NCCL on one machine
  }
  setenv("NCCL_DEBUG", "INFO", 0);  // what probing found, and the plan's changes, are log lines
  setenv("RIFFLE_PEER_TIMEOUT", std::to_string(site.peer_timeout_s).c_str(), 0);
}

}  // namespace

std::int64_t PluginReducer::cpu_us() const {
  static const bool leaves_all_to_host =
      std::getenv("RIFFLE_POLLED_BYTES") == nullptr && placement::job_mask().size() < kFewestCores;
  if (leaves_all_to_host) return 0;
  std::int64_t ns = 0;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::string name;
    std::int64_t run_ns = 0;
    std::ifstream(task.path() / "comm") >> name;
    std::ifstream(task.path() / "schedstat") >> run_ns;
    if (name.rfind("riffle", 0) == 0) ns += run_ns;
  }
  return ns / 1000;
}

int run_plugin_processes(const Site& site, const std::vector<int>& node_of_rank,
                         const PluginWork& work) {
  set_environment(site);
  const auto node_of = [&](int rank) { return node_of_rank[static_cast<std::size_t>(rank)]; };
  host::LaunchOptions options;
  options.ranks = site.ranks;
  options.deadline_ms = kDayMs;
  options.before = [&](int rank) { return site.enter(node_of(rank)); };
  const auto exits = host::launch(options, [&](host::Bootstrap& bootstrap) {
    prctl(PR_SET_NAME,
          "node");  // else its threads would be called as the plugin's, after the command
    return work(bootstrap, node_of(bootstrap.rank()));
  });
  return host::all_succeeded(exits) ? 0 : 1;
}

}  // namespace riffle::bench
