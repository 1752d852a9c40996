// NET as another library's, where RIFFLE_NET names one (transport/nccl_net): the library is opened
// at the first init, and NCCL's tables are filled with its functions. COLLNET beside it is the
// library's own, if it has one (collnet_passed.h); with RIFFLE_COLLNET=on it goes over connections
// of that library, with =tcp over Riffle's. Any thread.
#pragma once

#include <mutex>

#include "plugin/abi/net_properties.h"
#include "plugin/transport/nccl_net/wire.h"
#include "topology/base/status.h"

namespace riffle::entry {

// What NCCL's init says.
struct NetStart : nccl_net::StartArguments {
  void** context;  // null: the version has none
};

bool has_wire();
bool is_wire_in_use();  // NET has started over it

// The library that RIFFLE_NET names; the error stays, too: NCCL asks once per process.
const Result<nccl_net::Library>& wire_library();

// The library's init for one communicator, and the context that NCCL is to hold.
Status start_library(const nccl_net::Wire& wire, const NetStart& start);
// After the first: a wire that NCCL cannot use is refused, and its library finalized.
Status check_first_start(const nccl_net::Wire& wire, const NetStart& start);
// One line per process; and COLLNET's devices are this wire's from now on.
void announce(const nccl_net::Wire& wire, int table_version, abi::LogFn log);
// finalize of every table over a library.
abi::NcclResult end_wire(void* context);

// init of a version whose table is `table`.
template <class Table>
Status start_wire(const NetStart& start, Table* table) {
  static std::mutex mutex;
  static const nccl_net::WireOf<Table>* in_use = nullptr;  // lives as long as the process
  const std::lock_guard lock(mutex);
  if (in_use != nullptr) return start_library(*in_use, start);
  const auto& library = wire_library();
  if (!library) return library.status();
  auto found = nccl_net::find_wire<Table>(*library);
  if (!found) return found.status();
  if (Status status = start_library(*found, start); !status) return status;
  if (Status status = check_first_start(*found, start); !status) return status;
  in_use = new nccl_net::WireOf<Table>(*found);
  in_use->fill(table);
  if constexpr (requires { table->finalize; }) table->finalize = end_wire;
  announce(*in_use, nccl_net::kVersion<Table>, start.log);
  return Status::ok();
}

// -- COLLNET beside a wire. NCCL takes devices of NET and COLLNET for the same by name and index,
// so COLLNET shows the library's. Its data goes from and to host memory.

Status count_wire_devices(int* count);
Status wire_properties(int device, abi::NetPropsV12* properties);

}  // namespace riffle::entry
