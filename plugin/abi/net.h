// NET: the function tables v5 to v12.
//
// Arguments in order:
//   listen        [ctx v11+,] device, 128-byte handle to fill, out listen object
//   connect       [ctx v11+,] device, [config v10,] handle, out send object, [device handle v7+]
//   accept        listen object, out receive object, [device handle v7+]
//   regMr         send or receive object, address, length, pointer type, out memory handle
//   regMrDmaBuf   object, address, length, pointer type, offset, file descriptor, out memory handle
//   isend         send object, address, length, tag, memory handle, [profiler handle v10+,]
//                 out request
//   irecv         receive object, n, n addresses, n capacities, n tags, n memory handles,
//                 [n profiler handles v10+,] out request
//   iflush        receive object, n, n addresses, n sizes, n memory handles, out request
//   test          request, out done, out sizes
//   getDeviceMr   object, memory handle, out device-visible handle
//   irecvConsumed receive object, n, request
//   makeVDevice   out device index, members
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/abi/common.h"
#include "plugin/abi/net_properties.h"

namespace riffle::abi {

struct NetV5 {  // 128
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV5*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(int, void*, void**);
  NcclResult (*accept)(void*, void**);
  NcclResult (*regMr)(void*, void*, int, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, int, int, void*, void**);
  NcclResult (*irecv)(void*, int, void**, int*, int*, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
};

struct NetV6 {  // 136: + regMrDmaBuf after regMr
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV6*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(int, void*, void**);
  NcclResult (*accept)(void*, void**);
  NcclResult (*regMr)(void*, void*, int, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, int, int, void*, void**);
  NcclResult (*irecv)(void*, int, void**, int*, int*, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
};

struct NetV7 {  // 152: device handles, getDeviceMr, irecvConsumed
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV7*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(int, void*, void**, NetDevHandle**);
  NcclResult (*accept)(void*, void**, NetDevHandle**);
  NcclResult (*regMr)(void*, void*, int, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, int, int, void*, void**);
  NcclResult (*irecv)(void*, int, void**, int*, int*, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*getDeviceMr)(void*, void*, void**);
  NcclResult (*irecvConsumed)(void*, int, void*);
};

struct NetV8 {  // 152: regMr size becomes std::size_t
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV8*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(int, void*, void**, NetDevHandle**);
  NcclResult (*accept)(void*, void**, NetDevHandle**);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, int, int, void*, void**);
  NcclResult (*irecv)(void*, int, void**, int*, int*, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*getDeviceMr)(void*, void*, void**);
  NcclResult (*irecvConsumed)(void*, int, void*);
};

struct NetV9 {  // 160: isend/irecv sizes std::size_t, makeVDevice
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV9*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(int, void*, void**, NetDevHandle**);
  NcclResult (*accept)(void*, void**, NetDevHandle**);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, std::size_t, int, void*, void**);
  NcclResult (*irecv)(void*, int, void**, std::size_t*, int*, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*getDeviceMr)(void*, void*, void**);
  NcclResult (*irecvConsumed)(void*, int, void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV9*);
};

struct NetV10 {  // 160: profiler callback, config on connect, phandles
  const char* name;
  NcclResult (*init)(LogFn, ProfilerFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV10*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(int, NetCommConfig*, void*, void**, NetDevHandle**);
  NcclResult (*accept)(void*, void**, NetDevHandle**);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, std::size_t, int, void*, void*, void**);
  NcclResult (*irecv)(void*, int, void**, std::size_t*, int*, void**, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*getDeviceMr)(void*, void*, void**);
  NcclResult (*irecvConsumed)(void*, int, void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV10*);
};

struct NetV11 {  // 176: per-communicator context, finalize, setNetAttr
  const char* name;
  NcclResult (*init)(void**, std::uint64_t, NetCommConfig*, LogFn, ProfilerFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV11*);
  NcclResult (*listen)(void*, int, void*, void**);
  NcclResult (*connect)(void*, int, void*, void**, NetDevHandle**);
  NcclResult (*accept)(void*, void**, NetDevHandle**);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, std::size_t, int, void*, void*, void**);
  NcclResult (*irecv)(void*, int, void**, std::size_t*, int*, void**, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*getDeviceMr)(void*, void*, void**);
  NcclResult (*irecvConsumed)(void*, int, void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV11*);
  NcclResult (*finalize)(void*);
  NcclResult (*setNetAttr)(void*, NetAttr*);
};

struct NetV12 {  // 176: as v11 with the v12 property records
  const char* name;
  NcclResult (*init)(void**, std::uint64_t, NetCommConfig*, LogFn, ProfilerFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV12*);
  NcclResult (*listen)(void*, int, void*, void**);
  NcclResult (*connect)(void*, int, void*, void**, NetDevHandle**);
  NcclResult (*accept)(void*, void**, NetDevHandle**);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*isend)(void*, void*, std::size_t, int, void*, void*, void**);
  NcclResult (*irecv)(void*, int, void**, std::size_t*, int*, void**, void**, void**);
  NcclResult (*iflush)(void*, int, void**, int*, void**, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeSend)(void*);
  NcclResult (*closeRecv)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*getDeviceMr)(void*, void*, void**);
  NcclResult (*irecvConsumed)(void*, int, void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV12*);
  NcclResult (*finalize)(void*);
  NcclResult (*setNetAttr)(void*, NetAttr*);
};

}  // namespace riffle::abi
