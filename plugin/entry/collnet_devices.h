// The devices that COLLNET shows: NET's, whatever NET stands on, as NCCL takes devices of both for
// the same by name and index. Where NET is another library's they are that library's; group plans
// go over the device that is shown, or with RIFFLE_COLLNET=tcp over one of Riffle's own.
#pragma once

#include <algorithm>

#include "plugin/entry/net_wire.h"
#include "plugin/entry/properties.h"
#include "plugin/transport/nccl_net/properties.h"

namespace riffle::entry {

inline Status count_shown_devices(int* count) {
  return has_wire() ? count_wire_devices(count) : count_devices(count);
}

template <class Properties>
Status fill_shown_properties(int device, Properties* out) {
  if (!has_wire()) return fill_properties(device, out);
  abi::NetPropsV12 p{};
  if (Status status = wire_properties(device, &p); !status) return status;
  // What Riffle's collectives can do: host memory, one device at a time, NCCL's default size.
  p.ptrSupport = abi::kPtrHost;
  p.regIsGlobal = 0;
  p.netDeviceType = abi::kDeviceHost;
  p.netDeviceVersion = abi::kDeviceVersionInvalid;
  p.vProps = {.ndevs = 1, .devs = {device}};
  p.maxCollBytes = abi::kDefaultMaxCollBytes;
  (void)nccl_net::translate_properties(p, device, out);  // one member fits every version
  return Status::ok();
}

// The transport's device that carries what is shown as `device`.
inline Status find_own_device(int device, int* own) {
  if (!has_wire()) {
    *own = device;
    return check_device(device);
  }
  abi::NetPropsV12 shown{};
  if (Status status = wire_properties(device, &shown); !status) return status;
  *own = device;
  if (options().transport.name == kOverLibrary) return Status::ok();
  int count = 0;
  if (Status status = count_devices(&count); !status) return status;
  *own = device % std::max(count, 1);
  return Status::ok();
}

}  // namespace riffle::entry
