// COLLNET: the function tables v5 to v12.
//
// Arguments in order:
//   connect        n handle pointers, n, own index, listen object, out coll object
//   reduceSupport  datatype, operator, out boolean
//   iallreduce     coll object, send address, receive address, count, datatype, operator,
//                  send memory handle, receive memory handle, out request
//   iallgather     coll object, send address, number of receive parts, parts, bytes per rank,
//                  window offset, window bytes, send memory handle, out request
//   ireducescatter coll object, number of send parts, parts, receive address, bytes per rank,
//                  window offset, window bytes, datatype, operator, memory handle, out request
//   iflush         coll object, address, size, memory handle, out request
//   test           request, out done, out size
// The rest as in NET (net.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/abi/common.h"
#include "plugin/abi/net_properties.h"

namespace riffle::abi {

struct SgeV8 {
  void* mhandle;
  void* address;
  std::uint32_t size;
};  // 24 (4 bytes padding)
struct SgeV9 {
  void* mhandle;
  void* address;
  std::size_t size;
};  // 24; v10..v12 identical

struct CollNetV5 {  // 112
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV5*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, int, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, int, NcclDataType, NcclRedOp, void*, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
};

struct CollNetV6 {  // 120: + regMrDmaBuf
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV6*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, int, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, int, NcclDataType, NcclRedOp, void*, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
};

struct CollNetV7 {  // 120: v6 with the v7 property record
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV7*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, int, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, int, NcclDataType, NcclRedOp, void*, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
};

struct CollNetV8 {  // 136: regMr std::size_t; all-gather and reduce-scatter
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV8*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, int, NcclDataType, NcclRedOp, void*, void*, void**);
  NcclResult (*iallgather)(void*, void*, int, SgeV8*, std::size_t, std::size_t, std::size_t, void*,
                           void**);
  NcclResult (*ireducescatter)(void*, int, SgeV8*, void*, std::size_t, std::size_t, std::size_t,
                               NcclDataType, NcclRedOp, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
};

struct CollNetV9 {  // 144: iallreduce count std::size_t; makeVDevice
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV9*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, std::size_t, NcclDataType, NcclRedOp, void*, void*,
                           void**);
  NcclResult (*iallgather)(void*, void*, int, SgeV9*, std::size_t, std::size_t, std::size_t, void*,
                           void**);
  NcclResult (*ireducescatter)(void*, int, SgeV9*, void*, std::size_t, std::size_t, std::size_t,
                               NcclDataType, NcclRedOp, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV9*);
};

struct CollNetV10 {  // 144: identical to v9 (init has no profiler callback)
  const char* name;
  NcclResult (*init)(LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV10*);
  NcclResult (*listen)(int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, std::size_t, NcclDataType, NcclRedOp, void*, void*,
                           void**);
  NcclResult (*iallgather)(void*, void*, int, SgeV9*, std::size_t, std::size_t, std::size_t, void*,
                           void**);
  NcclResult (*ireducescatter)(void*, int, SgeV9*, void*, std::size_t, std::size_t, std::size_t,
                               NcclDataType, NcclRedOp, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV10*);
};

struct CollNetV11 {  // 152: context, commId, finalize
  const char* name;
  NcclResult (*init)(void**, std::uint64_t, LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV11*);
  NcclResult (*listen)(void*, int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, std::size_t, NcclDataType, NcclRedOp, void*, void*,
                           void**);
  NcclResult (*iallgather)(void*, void*, int, SgeV9*, std::size_t, std::size_t, std::size_t, void*,
                           void**);
  NcclResult (*ireducescatter)(void*, int, SgeV9*, void*, std::size_t, std::size_t, std::size_t,
                               NcclDataType, NcclRedOp, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV11*);
  NcclResult (*finalize)(void*);
};

struct CollNetV12 {  // 152: as v11 with the v12 property records
  const char* name;
  NcclResult (*init)(void**, std::uint64_t, LogFn);
  NcclResult (*devices)(int*);
  NcclResult (*getProperties)(int, NetPropsV12*);
  NcclResult (*listen)(void*, int, void*, void**);
  NcclResult (*connect)(void**, int, int, void*, void**);
  NcclResult (*reduceSupport)(NcclDataType, NcclRedOp, int*);
  NcclResult (*regMr)(void*, void*, std::size_t, int, void**);
  NcclResult (*regMrDmaBuf)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  NcclResult (*deregMr)(void*, void*);
  NcclResult (*iallreduce)(void*, void*, void*, std::size_t, NcclDataType, NcclRedOp, void*, void*,
                           void**);
  NcclResult (*iallgather)(void*, void*, int, SgeV9*, std::size_t, std::size_t, std::size_t, void*,
                           void**);
  NcclResult (*ireducescatter)(void*, int, SgeV9*, void*, std::size_t, std::size_t, std::size_t,
                               NcclDataType, NcclRedOp, void*, void**);
  NcclResult (*iflush)(void*, void*, int, void*, void**);
  NcclResult (*test)(void*, int*, int*);
  NcclResult (*closeColl)(void*);
  NcclResult (*closeListen)(void*);
  NcclResult (*makeVDevice)(int*, NetVPropsV12*);
  NcclResult (*finalize)(void*);
};

}  // namespace riffle::abi
