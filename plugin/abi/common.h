// What all plugin tables share: the types behind NCCL's enums and the two callbacks.
//
// Everything in this folder is our own declaration of NCCL's plugin ABI for NCCL 2.12 to 2.30; no
// NCCL header is used. test/abi compares every size, offset and constant with golden data taken
// from the releases. Layouts hold for LP64: enums 4 bytes, pointers 8.
#pragma once

#include <cstdint>

namespace riffle::abi {

using NcclResult = int;    // ResultCode
using NcclDataType = int;  // plugin/kernels/types.h has the numbers
using NcclRedOp = int;
using NcclFunc = int;  // Function

// level, subsystems, origin, line, printf format. Thread safe and never null.
using LogFn = void (*)(int, unsigned long, const char*, int, const char*, ...);
// event handle, type, the phandle of an isend or irecv, plugin id, extra data.
using ProfilerFn = NcclResult (*)(void**, int, void*, std::int64_t, void*);

}  // namespace riffle::abi
