// Device property records of one version made from another's, field by field, with NCCL's own
// values where the older record has no field (2.30, getProperties in src/plugin/net/net_v6.cc to
// net_v11.cc). Any thread.
#pragma once

#include <iterator>

#include "plugin/abi/constants.h"
#include "plugin/abi/net_properties.h"

namespace riffle::nccl_net {

// False: there are more members than the newer record holds, or fewer than none.
template <class To, class From>
bool copy_members(const From& from, To* to) {
  if (from.ndevs < 0 || static_cast<std::size_t>(from.ndevs) > std::size(from.devs) ||
      static_cast<std::size_t>(from.ndevs) > std::size(to->devs)) {
    return false;
  }
  to->ndevs = from.ndevs;
  for (int i = 0; i < from.ndevs; ++i) to->devs[i] = from.devs[i];
  return true;
}

// From v9 on: how devices are joined, and the limits of one message.
template <class To, class From>
bool copy_joined(const From& from, int device, To* to) {
  if constexpr (requires { from.vProps; }) {
    to->forceFlush = from.forceFlush;
    to->maxP2pBytes = from.maxP2pBytes;
    to->maxCollBytes = from.maxCollBytes;
    return copy_members(from.vProps, &to->vProps);
  } else {
    to->forceFlush = 0;
    to->maxP2pBytes = abi::kDefaultMaxP2pBytes;
    to->maxCollBytes = abi::kDefaultMaxCollBytes;
    to->vProps.ndevs = 1;
    to->vProps.devs[0] = device;
    return true;
  }
}

// The record of `device`. False: the older record cannot be, see copy_members.
template <class To, class From>
bool translate_properties(const From& from, int device, To* to) {
  To made{};
  made.name = from.name;
  made.pciPath = from.pciPath;
  made.guid = from.guid;
  made.ptrSupport = from.ptrSupport;
  made.speed = from.speed;
  made.port = from.port;
  made.latency = from.latency;
  made.maxComms = from.maxComms;
  made.maxRecvs = from.maxRecvs;
  if constexpr (requires { made.netDeviceType; }) {
    made.netDeviceType = abi::kDeviceHost;
    made.netDeviceVersion = abi::kDeviceVersionInvalid;
    if constexpr (requires { from.netDeviceType; }) {
      made.netDeviceType = from.netDeviceType;
      made.netDeviceVersion = from.netDeviceVersion;
    }
  }
  if constexpr (requires {
                  made.regIsGlobal;
                  from.regIsGlobal;
                }) {
    made.regIsGlobal = from.regIsGlobal;
  }
  if constexpr (requires { made.maxMultiRequestSize; }) {
    made.maxMultiRequestSize = 1;
    if constexpr (requires { from.maxMultiRequestSize; }) {
      made.maxMultiRequestSize = from.maxMultiRequestSize;
    }
  }
  if constexpr (requires { made.railId; }) {
    made.railId = abi::kNetIdUndefined;
    made.planeId = abi::kNetIdUndefined;
    if constexpr (requires { from.railId; }) {
      made.railId = from.railId;
      made.planeId = from.planeId;
    }
  }
  if constexpr (requires { made.vProps; }) {
    if (!copy_joined(from, device, &made)) return false;
  }
  *to = made;
  return true;
}

}  // namespace riffle::nccl_net
