// What `init` of NET, COLLNET and TUNER share: the logger, the devices, and, from the versions on
// that have one, the context of a communicator, which carries NCCL's communicator id.
#pragma once

#include <cstdint>
#include <memory>

#include "plugin/abi/common.h"
#include "plugin/abi/constants.h"
#include "plugin/abi/net_properties.h"
#include "plugin/collective/base/agreement.h"
#include "plugin/entry/border.h"
#include "topology/base/status.h"

namespace riffle::entry {

// Whether the network is left to NCCL's own transport (transport/device/rdma.h); then one line per
// process says so, and one warns where it is not but loses RDMA all the same. Takes the logger.
bool is_left_to_nccl(abi::LogFn log);

// ... or NET alone is not: all-reduces stay with NCCL over another library (RIFFLE_NET) unless
// RIFFLE_COLLNET is on or tcp. One line per process.
bool are_collectives_left_to_nccl(abi::LogFn log);

// init of NET and COLLNET: `start`, or a code that makes NCCL go on without the table where
// `decide` says so. That is not a failure that is worth a warning.
template <class Start>  // Status()
abi::ResultCode start_or_decline(const char* function, abi::LogFn log, bool (*decide)(abi::LogFn),
                                 Start&& start) noexcept {
  bool declines = false;
  const abi::ResultCode code = guard(function, [&] {
    declines = decide(log);
    return declines ? Status::ok() : start();
  });
  return declines ? abi::kInternalError : code;
}

// At start, so that what is wrong with them is said then, and NCCL takes another network.
Status find_devices();

// Publishes the knobs of this process for its neighbours on its node.
std::shared_ptr<agreement::Publication> publish_knobs(std::uint64_t comm_id);

// NET up to v10, once per process: finds the devices and publishes the knobs of this process for
// its neighbours on the node (collective/base/agreement.h).
Status start_process();

// NET v11 on, once per communicator; `config` may be null. On failure no context is left behind:
// NCCL 2.28 may free it.
Status start_communicator(std::uint64_t comm_id, const abi::NetCommConfig* config, void** context);
void end_communicator(void* context);

// The id that came with `context`; 0 for a null context.
std::uint64_t comm_id_of(const void* context);

}  // namespace riffle::entry
