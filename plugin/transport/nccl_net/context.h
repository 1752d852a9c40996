// What NCCL holds as the context of a communicator (NET and COLLNET v11 and later) while the table
// is another library's: the library's own context, or what NCCL's translation keeps in its place.
// Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "plugin/abi/common.h"
#include "plugin/abi/constants.h"
#include "plugin/abi/net_properties.h"

namespace riffle::nccl_net {

struct Context {
  // First: NCCL 2.29 and 2.30 hand NET's context to their own RMA plugin, which takes it for this,
  // reads it and stores another one. v10 takes it at connect.
  abi::NetCommConfig config{abi::kTrafficClassUndefined};
  void* theirs = nullptr;                          // a library's of v11 or v12
  abi::NcclResult (*end)(void* theirs) = nullptr;  // its finalize (wire.h)
  std::shared_ptr<void> ours;                      // what Riffle keeps of the communicator
};

// Those that are alive, so that a call with another one is an error and not a crash.
class Contexts {
 public:
  void* add(std::unique_ptr<Context> context);
  // Null, and a warning: init did not give it, or it was finalized. Valid until it is taken.
  Context* find(void* context);
  std::unique_ptr<Context> take(void* context);

 private:
  std::mutex mutex_;
  std::unordered_map<void*, std::unique_ptr<Context>> alive_;
};

Contexts& contexts();  // of this process

}  // namespace riffle::nccl_net
