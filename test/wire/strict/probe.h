// What a test may ask the strict plugin after a call: what arrived at it. Exported with C linkage
// as `strict_net_probe`.
#pragma once

#include <cstdint>

#include "plugin/abi/net_properties.h"

namespace strict {

struct Probe {
  long calls;                               // of accept, connect, isend, irecv and test so far
  long unexpected;                          // messages so far that no receive waited for
  int inits, finalizes, contexts;           // so far; alive now
  int listeners, sends, receives, regions;  // alive now
  std::uint64_t comm_id;                    // of the last init
  void* connect_context;                    // that the last connect got; its communicator's id
  std::uint64_t connect_comm_id;
  int traffic_class;                // of the last connect (v10) or init (v11 on)
  void* profiler_handle;            // of the last isend or irecv (v10 on)
  void* request_before;             // what *request held when the last irecv came
  int dma_buf_fd;                   // of the last regMrDmaBuf
  riffle::abi::NetAttr attributes;  // of the last setNetAttr, which came with this id
  std::uint64_t attributes_comm_id;
  riffle::abi::NetVPropsV12 members;  // of the last makeVDevice
  void* consumed;                     // the request of the last irecvConsumed
};

using ReadProbe = void(Probe* out);

}  // namespace strict
