// What NCCL holds as the network context of a communicator (NET v11 and later) while NET is another
// library's: the library's own context, or what NCCL's translation keeps in its place.
#pragma once

#include <memory>

#include "plugin/abi/common.h"
#include "plugin/abi/constants.h"
#include "plugin/abi/net_properties.h"

namespace riffle::nccl_net {

struct Context {
  void* theirs = nullptr;                                  // a library's of v11 or v12
  abi::NcclResult (*end)(void* theirs) = nullptr;          // its finalize (wire.h)
  abi::NetCommConfig config{abi::kTrafficClassUndefined};  // v10 takes it at connect
  std::shared_ptr<void> ours;                              // what Riffle keeps of the communicator
};

// NCCL passes back what init gave it, or null after a failed init.
inline void* theirs(void* context) {
  return context == nullptr ? nullptr : static_cast<Context*>(context)->theirs;
}

}  // namespace riffle::nccl_net
