// What `init` of NET, COLLNET and TUNER share: the logger, the devices, and, from the versions on
// that have one, the context of a communicator, which carries NCCL's communicator id.
#pragma once

#include <cstdint>
#include <memory>

#include "plugin/abi/common.h"
#include "plugin/collective/base/agreement.h"
#include "topology/base/status.h"

namespace riffle::entry {

// Publishes the knobs of this process for its neighbours on its node.
std::shared_ptr<agreement::Publication> publish_knobs(std::uint64_t comm_id);

// NET up to v10, once per process: takes the logger, finds the devices and publishes the knobs of
// this process for its neighbours on the node (collective/base/agreement.h).
Status start_process(abi::LogFn log);

// NET v11 on, once per communicator. On failure no context is left behind: NCCL 2.28 may free it.
Status start_communicator(std::uint64_t comm_id, abi::LogFn log, void** context);
void end_communicator(void* context);

// The id that came with `context`; 0 for a null context.
std::uint64_t comm_id_of(const void* context);

}  // namespace riffle::entry
