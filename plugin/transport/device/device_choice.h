// The devices that NCCL sees, of the NICs that were chosen (nic_choice.h). Data in, data out.
#pragma once

#include <vector>

#include "plugin/transport/device/device.h"
#include "topology/host/nics.h"

namespace riffle {

// One device of all, or one for each.
std::vector<Device> make_devices(const std::vector<NicAddress>& chosen,
                                 const std::vector<Nic>& nics, bool per_nic);

}  // namespace riffle
