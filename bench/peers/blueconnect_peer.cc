// blueconnect: a rival that is told the racks, over the same NET as NCCL's own algorithms.
#include "bench/peers/blueconnect/communicator.h"
#include "bench/peers/plugin_process.h"
#include "bench/peers/racks.h"

namespace riffle::bench {
namespace {

class BlueConnectReducer final : public PluginReducer {
 public:
  explicit BlueConnectReducer(BlueConnect& library) : library_(library) {}
  Status run(const Work& work) override {
    return library_.all_reduce(work.send, work.receive, work.count, work.type, work.op);
  }

 private:
  BlueConnect& library_;
};

Status work(const Site& site, host::Bootstrap& bootstrap, std::size_t chunk_bytes) {
  host::TableVersions versions;
  versions.collnet = versions.tuner = versions.profiler = 0;
  auto library = host::PluginLibrary::load(site.plugin, versions);
  if (!library) return library.status();
  BlueConnectOptions options;
  options.chunk_bytes = chunk_bytes;
  options.progress = kProgress;
  auto connected = BlueConnect::connect(*library.value(), bootstrap, racks_of(site), options);
  if (!connected) return connected.status();
  BlueConnectReducer reducer(*connected.value());
  return serve_and_end(site, bootstrap.rank(), reducer, *connected.value());
}

}  // namespace

Peer blueconnect_peer(const std::string& name, std::size_t chunk_bytes) {
  Peer peer;
  peer.name = peer.title = name;
  peer.network = "racks";
  peer.supervise = [chunk_bytes](const Site& site) {
    return run_plugin_processes(
        site, nodes_as_they_lie(site.ranks),
        [&](host::Bootstrap& bootstrap, int) { return work(site, bootstrap, chunk_bytes); });
  };
  return peer;
}

}  // namespace riffle::bench
