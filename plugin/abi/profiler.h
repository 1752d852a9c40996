// PROFILER: event states and the tables v1 to v6 (48 bytes each). Versions that differ only in the
// type of their event descriptor share a template.
//
// v4's init takes (context, mask, name, hash, ...), v5's and v6's (context, id, mask, name, ...).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/abi/common.h"
#include "plugin/abi/profiler_events.h"

namespace riffle::abi {

struct ProxyOpState {
  std::size_t transSize;
  int steps;
};

struct ProxyStepState {
  std::size_t transSize;
};

struct ProxyCtrlState {
  int appendedProxyOps;
};

struct NetPluginState {
  void* data;
};

struct KernelChState {
  std::uint64_t pTimer;
};

union ProfilerStateV1 {  // 16; v2, v3 identical
  ProxyOpState proxyOp;
  ProxyCtrlState proxyCtrl;
};

union ProfilerStateV4 {  // 8; v5, v6 identical
  ProxyStepState proxyStep;
  ProxyCtrlState proxyCtrl;
  NetPluginState netPlugin;
  KernelChState kernelCh;
};

template <class Event>
struct ProfilerTableV1 {
  const char* name;
  NcclResult (*init)(void** context, int* activationMask);
  NcclResult (*startEvent)(void* context, void** handle, Event*);
  NcclResult (*stopEvent)(void* handle);
  NcclResult (*recordEventState)(void* handle, int state, ProfilerStateV1*);
  NcclResult (*finalize)(void* context);
};
using ProfilerV1 = ProfilerTableV1<ProfilerEventV1>;
using ProfilerV2 = ProfilerTableV1<ProfilerEventV2>;
using ProfilerV3 = ProfilerTableV1<ProfilerEventV3>;

struct ProfilerV4 {
  const char* name;
  NcclResult (*init)(void** context, int* activationMask, const char* commName,
                     std::uint64_t commHash, int nNodes, int nRanks, int rank, LogFn);
  NcclResult (*startEvent)(void* context, void** handle, ProfilerEventV4*);
  NcclResult (*stopEvent)(void* handle);
  NcclResult (*recordEventState)(void* handle, int state, ProfilerStateV4*);
  NcclResult (*finalize)(void* context);
};

template <class Event>
struct ProfilerTableV5 {
  const char* name;
  NcclResult (*init)(void** context, std::uint64_t commId, int* activationMask,
                     const char* commName, int nNodes, int nRanks, int rank, LogFn);
  NcclResult (*startEvent)(void* context, void** handle, Event*);
  NcclResult (*stopEvent)(void* handle);
  NcclResult (*recordEventState)(void* handle, int state, ProfilerStateV4*);
  NcclResult (*finalize)(void* context);
};
using ProfilerV5 = ProfilerTableV5<ProfilerEventV5>;
using ProfilerV6 = ProfilerTableV5<ProfilerEventV6>;

}  // namespace riffle::abi
