// The transport's part of the options, with NCCL's settings where ours are empty.
#pragma once

#include "plugin/config/config.h"
#include "plugin/transport/base/options.h"
#include "plugin/transport/device/rdma.h"

namespace riffle {

TransportOptions transport_options(const Config& config);

RdmaChoice rdma_choice(const Config& config);

}  // namespace riffle
