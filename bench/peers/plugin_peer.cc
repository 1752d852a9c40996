// riffle and nccl-ring: the same shared object under the stand-in for NCCL's host side. riffle goes
// the way cost model and tuner choose; nccl-ring has CollNet off and is held to the ring.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "bench/harness/worker.h"
#include "bench/peers/peer.h"
#include "lab/nccl_host/communicator.h"
#include "lab/nccl_host/launcher.h"

namespace riffle::bench {
namespace {

constexpr int kDayMs = 24 * 3600 * 1000;  // the bench has its own deadlines
// NCCL's proxy spins, which small sums are the faster for. All nodes share this machine, so it does
// so for as long as those take; large ones leave the processors to other work.
constexpr int kSpinUs = 5000;

class PluginReducer final : public AllReducer {
 public:
  explicit PluginReducer(host::Communicator& comm) : comm_(comm) {}
  Status run(const Work& work) override {
    Status s = comm_.all_reduce(work.send, work.receive, work.count, work.type, work.op);
    return s ? comm_.wait() : s;
  }
  bool survives_losses() const override {
    const char* on_loss = std::getenv("RIFFLE_ON_LOSS");
    return on_loss != nullptr && std::string(on_loss) == "continue";
  }
  // The plugin's own threads. The others play NCCL and its GPU, which copy and reduce elsewhere.
  std::int64_t cpu_us() const override {
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

 private:
  host::Communicator& comm_;
};

void set_environment(const Site& site) {
  if (!site.fabric.empty()) setenv("RIFFLE_FABRIC", site.fabric.c_str(), 0);
  if (!site.cluster) {
    setenv("RIFFLE_SOCKET_IFNAME", "=lo", 0);
    setenv("RIFFLE_COLLNET", "on", 0);  // auto would rightly fall back to NCCL on one machine
  }
  // The plan's changes are log lines.
  if (site.cluster && site.cluster->profile().neighbour.node >= 0) setenv("NCCL_DEBUG", "INFO", 0);
  setenv("RIFFLE_PEER_TIMEOUT", std::to_string(site.peer_timeout_s).c_str(), 0);
}

Status work(host::Bootstrap& bootstrap, const Site& site, bool ring_only) {
  host::TableVersions versions;
  if (ring_only) versions.collnet = versions.tuner = 0;
  auto library = host::PluginLibrary::load(site.plugin, versions);
  if (!library) return library.status();
  host::Options options;
  options.spin_us = kSpinUs;
  options.collnet = !ring_only;
  if (ring_only) options.algorithm = host::Algorithm::kRing;
  auto comm = host::Communicator::create(*library.value(), bootstrap, options);
  if (!comm) return comm.status();
  auto line = ControlLine::connect(site.control, bootstrap.rank());
  if (!line) return line.status();
  PluginReducer reducer(*comm.value());
  const Status served = serve(line.value(), reducer, bootstrap.rank(), site.ranks);
  const Status ended = served ? comm.value()->destroy() : comm.value()->abort();
  return served ? ended : served;
}

}  // namespace

Peer plugin_peer(const std::string& name, bool ring_only) {
  return {name, name, "", [ring_only](const Site& site) {
            set_environment(site);
            host::LaunchOptions options;
            options.ranks = site.ranks;
            options.deadline_ms = kDayMs;
            options.before = [&site](int rank) { return site.enter(rank); };
            const auto exits = host::launch(options, [&](host::Bootstrap& bootstrap) {
              return work(bootstrap, site, ring_only);
            });
            return host::all_succeeded(exits) ? 0 : 1;
          }};
}

}  // namespace riffle::bench
