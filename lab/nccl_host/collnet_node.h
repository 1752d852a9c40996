// One node of a COLLNET communicator, on the plugin's own table: the calls that NCCL makes, without
// the buffers and threads that NCCL, or its stand-in, has beside them.
//
// One thread. The table and the regions must outlive it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lab/nccl_host/bootstrap.h"
#include "lab/nccl_host/memory_region.h"
#include "lab/nccl_host/tables/plugin_tables.h"
#include "topology/base/status.h"

namespace riffle::host {

class CollNetNode {
 public:
  // Collective over the bootstrap's ranks.
  static Result<std::unique_ptr<CollNetNode>> connect(CollNetTable& table, Bootstrap& bootstrap);
  CollNetNode(const CollNetNode&) = delete;
  CollNetNode& operator=(const CollNetNode&) = delete;
  ~CollNetNode();  // closes it

  // A sum of floats, of the first `bytes` of both regions; returns when it is done, or with an
  // error after `limit`.
  Status all_reduce(MemoryRegion& send, MemoryRegion& receive, std::size_t bytes,
                    std::chrono::seconds limit = std::chrono::minutes(2));

 private:
  explicit CollNetNode(CollNetTable& table) : table_(table) {}
  Status link(Bootstrap& bootstrap);
  Status finish(void* request, std::chrono::seconds limit);

  CollNetTable& table_;
  void* context_ = nullptr;
  void* comm_ = nullptr;
};

}  // namespace riffle::host
