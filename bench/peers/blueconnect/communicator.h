// BlueConnect's all-reduce over a plugin's NET, driven as NCCL drives its own collectives.
//
// The buffer is cut into chunks that go through the stages in a pipeline: every kind of stage has
// connections of its own and works on the next chunk while the others are still at the ones before,
// so that rack and uplinks are busy at the same time. More such pipelines side by side were slower.
// One thread calls; what does the transfers the options say.
#pragma once

#include <memory>

#include "bench/peers/blueconnect/stages.h"
#include "lab/nccl_host/bootstrap.h"
#include "lab/nccl_host/launch_builder.h"
#include "lab/nccl_host/net_fabric.h"
#include "lab/nccl_host/progress.h"
#include "lab/nccl_host/tables/plugin_library.h"

namespace riffle::bench {

struct BlueConnectOptions {
  std::size_t chunk_bytes = std::size_t{1} << 20;   // cut further where racks are small
  std::size_t buffer_bytes = std::size_t{4} << 20;  // of a connection, eight steps
  host::ProgressOptions progress;
  int deadline_ms = 60000;
};

class BlueConnect {
 public:
  // Collective. Ranks of the bootstrap are nodes; every one is in one rack. Library and bootstrap
  // must outlive it.
  static Result<std::unique_ptr<BlueConnect>> connect(host::PluginLibrary& library,
                                                      host::Bootstrap& bootstrap, Racks racks,
                                                      const BlueConnectOptions& options);
  ~BlueConnect();
  BlueConnect(const BlueConnect&) = delete;

  // Returns when `receive` holds the result. Not in place; op is no average.
  Status all_reduce(const void* send, void* receive, std::size_t count, DataType type, host::Op op);

  Status destroy();  // waits for the proxies, then tears down
  Status abort();    // tears down at once

 private:
  BlueConnect(host::PluginLibrary& library, int node, Racks racks,
              const BlueConnectOptions& options);
  Status connect_links(host::Bootstrap& bootstrap);
  std::size_t chunk_elements(DataType type) const;
  void add_chunk(host::LaunchBuilder& builder, const Range& chunk, const host::Program& like) const;

  host::PluginLibrary& library_;
  const int node_;
  const Racks racks_;
  const BlueConnectOptions options_;
  void* context_ = nullptr;
  bool is_up_ = false;
  host::ProfilerFeed profiler_;
  std::unique_ptr<host::NetFabric> net_;
  std::unique_ptr<host::Progress> progress_;
};

}  // namespace riffle::bench
