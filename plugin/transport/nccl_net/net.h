// The library as Riffle itself calls it, for COLLNET's meshes (library_mesh.h): a table of NCCL's
// newest version that stands on the one that NET uses, and contexts of Riffle's own, so that
// connections outlive NCCL's. Threads as the library demands; setting is once per process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plugin/abi/net.h"
#include "plugin/transport/nccl_net/wire.h"
#include "topology/base/status.h"

namespace riffle::nccl_net {

struct Net {
  Wire wire;
  std::string name;     // what the library calls itself: "IB", "AWS Libfabric"
  std::string text;     // for messages: "/opt/libnccl-net-ofi.so (v8)"
  abi::NetV12 table{};  // a context is one of make_context()'s
  abi::LogFn log = nullptr;
};

// The first call counts. After the wire's first start, as libraries may fill their tables then.
void set_net_in_use(const Wire& wire, abi::LogFn log);
// An error where NET has not started.
Result<const Net*> net_in_use();

// One more start of the library, for the meshes of one communicator; its end is the library's
// finalize, which is left out while the process exits.
Result<std::shared_ptr<void>> make_context(const Net& net, std::uint64_t comm_id);

// The error of a call that returned `result`: "LIBRARY: isend to node 3 (10.0.0.3:4000) returned 2
// (system error)".
Status failed_call(const Net& net, const std::string& call, abi::NcclResult result);

// What the library gets as NCCL's profiler callback: NCCL's own, but for transfers that are
// Riffle's, of which NCCL's profiler knows nothing (it has no handle for them).
abi::ProfilerFn profiler_beside(abi::ProfilerFn nccls);

}  // namespace riffle::nccl_net
