// One node of a COLLNET communicator, on the plugin's own table: the calls that NCCL makes, without
// the buffers and threads that NCCL, or its stand-in, has beside them.
//
// One thread. The table and the regions must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lab/nccl_host/bootstrap.h"
#include "lab/nccl_host/memory_region.h"
#include "lab/nccl_host/tables/plugin_tables.h"
#include "topology/base/status.h"

namespace riffle::bench {

class Node {
 public:
  // Collective over the bootstrap's ranks.
  static Result<std::unique_ptr<Node>> connect(host::CollNetTable& table,
                                               host::Bootstrap& bootstrap);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // closes it

  // A sum of floats, over all of both regions; returns when it is done, within two minutes.
  Status all_reduce(host::MemoryRegion& send, host::MemoryRegion& receive);

 private:
  explicit Node(host::CollNetTable& table) : table_(table) {}
  Status link(host::Bootstrap& bootstrap);
  Status finish(void* request);

  host::CollNetTable& table_;
  void* context_ = nullptr;
  void* comm_ = nullptr;
};

}  // namespace riffle::bench
