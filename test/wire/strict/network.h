// The strict plugin's one network, whatever the table's version: every object that it handed out
// and that is alive, and every rule of the contract (docs/nccl-contract.md) that a caller can
// break. A broken rule is a violation, which ends the process. One lock is held over every call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/abi/common.h"
#include "plugin/abi/constants.h"
#include "plugin/abi/net_properties.h"
#include "test/wire/strict/connection.h"
#include "test/wire/strict/probe.h"

namespace strict {

using Result = riffle::abi::NcclResult;

// Tables up to v10 start once per process and have no context. `most_requests`: that the table's
// connections bear.
Result start_once(int most_requests);
Result start(void** context, std::uint64_t comm_id, int traffic_class);
Result finalize(void* context);

int device_count();
// The offset of the device among those that there are, virtual ones too; or an error.
Result check_device(int device);
bool offloads();
Result make_device(int* device, const riffle::abi::NetVPropsV12& members);
riffle::abi::NetVPropsV12 members_of(int device);
Result set_attributes(void* context, const riffle::abi::NetAttr& attributes);

// `context` counts only where `has_context`.
Result listen(bool has_context, void* context, int device, void* handle, void** listener);
Result connect(bool has_context, void* context, int device, int traffic_class, void* handle,
               void** comm, riffle::abi::NetDevHandle** offload);
Result accept(void* listener, void** comm, riffle::abi::NetDevHandle** offload);
Result close_connection(void* comm, bool sends);
Result close_listener(void* listener);

Result register_region(void* comm, void* data, std::size_t size, int type, int dma_buf_fd,
                       void** mhandle);
Result deregister_region(void* comm, void* mhandle);
Result device_region(void* comm, void* mhandle, void** out);

Result send(void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler_handle,
            void** request);
Result receive(void* comm, int n, void** data, const std::size_t* sizes, const int* tags,
               void** mhandles, void* profiler_handle, void** request);
Result flush(void* comm, int n, void** data, const int* sizes, void** mhandles, void** request);
Result test(void* request, int* done, int* sizes);
Result consume(void* comm, int n, void* request);

}  // namespace strict
