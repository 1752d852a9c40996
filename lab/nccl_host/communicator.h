// A communicator of one single-GPU node per rank: what ncclCommInitRank, ncclAllReduce, ... do with
// a plugin, without NCCL and without a GPU.
//
// Set-up calls run on the creating thread, transfers on a progress thread of the communicator's
// own, as in NCCL (service and progress thread), or in wait() (progress_options.h). Calls below
// come from one thread. Collectives are
// queued and run in order, as on one stream; those of a group form one launch. User buffers must
// stay alive until wait() has returned. Nothing waits beyond Options::deadline_ms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lab/nccl_host/bootstrap.h"
#include "lab/nccl_host/progress_options.h"
#include "lab/nccl_host/tables/plugin_library.h"
#include "lab/nccl_host/work/schedule.h"
#include "topology/base/status.h"

namespace riffle::host {

struct Options {
  int channels = 2;
  std::size_t buffer_bytes = std::size_t{4} << 20;  // NCCL_BUFFSIZE
  Release release = Release::k2_30;
  bool collnet = true;          // NCCL_COLLNET_ENABLE
  bool point_to_point = false;  // connect every pair for send and receive (NCCL does it on demand)
  std::optional<Algorithm> algorithm;  // NCCL_ALGO for all-reduce; none: cost model and tuner
  bool poison_tail = false;            // collnet_link.h
  ProgressOptions progress;
  int deadline_ms = 60000;
  std::uint64_t comm_id = 0;  // the same on all ranks; 0: rank 0 draws one for all
};

class Communicator {
 public:
  // Collective over the bootstrap's group. Falls back to NET alone when COLLNET cannot be set up.
  // The library and the bootstrap must outlive the communicator.
  static Result<std::unique_ptr<Communicator>> create(PluginLibrary& library, Bootstrap& bootstrap,
                                                      const Options& options);
  ~Communicator();  // aborts what destroy() has not ended

  Status all_reduce(const void* send, void* receive, std::size_t count, DataType type, Op op);
  Status all_gather(const void* send, void* receive, std::size_t count, DataType type);
  Status reduce_scatter(const void* send, void* receive, std::size_t count, DataType type, Op op);
  Status broadcast(const void* send, void* receive, std::size_t count, DataType type, int root);
  Status reduce(const void* send, void* receive, std::size_t count, DataType type, Op op, int root);
  Status send(const void* data, std::size_t bytes, int peer);
  Status receive(void* data, std::size_t bytes, int peer);
  void group_start();
  Status group_end();

  // Until everything queued is done. After an error of the plugin nothing moves any more.
  Status wait();
  Status async_error() const;  // ncclCommGetAsyncError

  Status destroy();  // waits for the proxies, then tears down
  Status abort();    // tears down at once, with requests outstanding

  bool has_collnet() const;
  // What an all-reduce of this size would run on, asked in the way of a real one.
  Algorithm choice(std::size_t bytes, DataType type = DataType::kFloat32, Op op = Op::kSum);
  int outstanding() const;              // CollNet requests not yet complete; a snapshot
  std::uint64_t collnet_calls() const;  // iallreduce calls that the plugin has accepted so far

 private:
  class Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace riffle::host
