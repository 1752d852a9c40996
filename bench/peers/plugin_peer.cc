// riffle and NCCL's own algorithms: the same shared object under the stand-in for NCCL's host side.
// riffle goes the way cost model and tuner choose; nccl-* have CollNet off and are held to one
// algorithm, whose Simple protocol runs over the plugin's NET.
#include <cstdlib>
#include <string>

#include "bench/peers/plugin_process.h"
#include "bench/peers/racks.h"
#include "lab/nccl_host/communicator.h"

namespace riffle::bench {
namespace {

class CommunicatorReducer final : public PluginReducer {
 public:
  explicit CommunicatorReducer(host::Communicator& comm) : comm_(comm) {}
  Status run(const Work& work) override {
    Status s = comm_.all_reduce(work.send, work.receive, work.count, work.type, work.op);
    return s ? comm_.wait() : s;
  }
  bool survives_losses() const override {
    const char* on_loss = std::getenv("RIFFLE_ON_LOSS");
    return on_loss != nullptr && std::string(on_loss) == "continue";
  }

 private:
  host::Communicator& comm_;
};

// collnet and algorithm of the options say what is measured.
Status work(const Site& site, host::Bootstrap& bootstrap, int node, const host::Options& options) {
  host::TableVersions versions;
  if (!options.collnet) versions.collnet = versions.tuner = 0;
  auto library = host::PluginLibrary::load(site.plugin, versions);
  if (!library) return library.status();
  auto comm = host::Communicator::create(*library.value(), bootstrap, options);
  if (!comm) return comm.status();
  CommunicatorReducer reducer(*comm.value());
  return serve_and_end(site, node, reducer, *comm.value());
}

}  // namespace

Peer riffle_peer(const std::string& name, const Environment& environment) {
  Peer peer;
  peer.name = peer.title = name;
  peer.network = "";
  for (const auto& [key, value] : environment) {
    if (key == "RIFFLE_FABRIC") peer.network = value.empty() ? "live" : "file";
  }
  peer.supervise = [environment](const Site& site) {
    for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
    host::Options options;
    options.progress = kProgress;
    return run_plugin_processes(
        site, nodes_as_they_lie(site.ranks),
        [&](host::Bootstrap& bootstrap, int node) { return work(site, bootstrap, node, options); });
  };
  return peer;
}

Peer nccl_peer(const std::string& name, const NcclSettings& settings) {
  Peer peer;
  peer.name = peer.title = name;
  if (settings.in_rack_order) peer.network = "racks";
  peer.supervise = [settings](const Site& site) {
    host::Options options;
    options.progress = kProgress;
    options.collnet = false;
    options.algorithm = settings.algorithm;
    options.buffer_bytes = settings.buffer_bytes;
    const auto order =
        settings.in_rack_order ? rack_order(racks_of(site)) : nodes_as_they_lie(site.ranks);
    return run_plugin_processes(site, order, [&](host::Bootstrap& bootstrap, int node) {
      return work(site, bootstrap, node, options);
    });
  };
  return peer;
}

}  // namespace riffle::bench
