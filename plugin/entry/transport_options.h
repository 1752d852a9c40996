// The transport's part of the options, with NCCL's settings where ours are empty.
#pragma once

#include "plugin/config/config.h"
#include "plugin/transport/base/options.h"
#include "plugin/transport/device/rdma.h"
#include "plugin/transport/nccl_net/library_name.h"

namespace riffle {

TransportOptions transport_options(const Config& config);

RdmaChoice rdma_choice(const Config& config);

// Empty name: Riffle's own NET.
nccl_net::LibraryChoice wire_choice(const Config& config);

}  // namespace riffle
