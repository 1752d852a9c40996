// The device record that NET and COLLNET show, for every version of it. Both tables must show the
// same devices (NCCL keys them by name and takes COLLNET's record with NET's index), so there is
// one function for both.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plugin/abi/constants.h"
#include "plugin/entry/options.h"
#include "plugin/net/net_service.h"
#include "plugin/transport/device/device.h"
#include "topology/base/status.h"

namespace riffle::entry {

inline Status count_devices(int* count) {
  const Result<std::vector<Device>>& all = devices(options().transport.devices);
  if (!all) return all.status();
  *count = static_cast<int>((*all).size());
  return Status::ok();
}

inline Status check_device(int device) {
  int count = 0;
  if (Status status = count_devices(&count); !status) return status;
  if (device >= 0 && device < count) return Status::ok();
  return invalid_argument("device " + std::to_string(device) + " does not exist, there are 0.." +
                          std::to_string(count - 1));
}

// `device` stays for the life of the process, so NCCL may keep pointers into it; it does not write
// through them.
template <class Properties>
void describe(const Device& device, int index, Properties* out) {
  Properties p{};
  p.name = const_cast<char*>(device.name.c_str());
  p.pciPath = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  p.guid = device.guid;
  p.ptrSupport = abi::kPtrHost;
  p.speed = device.speed_mbps;
  p.port = 1;
  p.latency = 0;  // unknown: NCCL then uses its own estimate for networks
  // Every channel that the topology search routes over the device takes one: no limit from us.
  p.maxComms = 65536;
  // More than one lets the GPUs of a process (and ranks behind a PXN proxy) share one connection
  // per peer and channel for send/recv: fewer sockets in all-to-all exchanges. Rings and trees
  // never share, so their receives stay single.
  p.maxRecvs = net::kMaxGroupedRecvs;
  if constexpr (requires { p.netDeviceType; }) {
    p.netDeviceType = abi::kDeviceHost;
    p.netDeviceVersion = abi::kDeviceVersionInvalid;
  }
  if constexpr (requires { p.vProps; }) {
    p.vProps.ndevs = 1;
    p.vProps.devs[0] = index;
    // NCCL's own defaults: below 2^31, as `test` tells sizes as int.
    p.maxP2pBytes = abi::kDefaultMaxP2pBytes;
    p.maxCollBytes = abi::kDefaultMaxCollBytes;
  }
  if constexpr (requires { p.maxMultiRequestSize; }) p.maxMultiRequestSize = 1;
  if constexpr (requires { p.railId; }) {
    p.railId = abi::kNetIdUndefined;
    p.planeId = abi::kNetIdUndefined;
  }
  *out = p;  // regIsGlobal and forceFlush stay 0
}

template <class Properties>
Status fill_properties(int index, Properties* out) {
  if (Status status = check_device(index); !status) return status;
  const std::vector<Device>& all = *devices(options().transport.devices);  // never changes
  describe(all[static_cast<std::size_t>(index)], index, out);
  return Status::ok();
}

}  // namespace riffle::entry
