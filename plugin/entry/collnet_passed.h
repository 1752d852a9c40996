// COLLNET as the library's own that RIFFLE_NET names (SHARP's, for one), where all-reduces are left
// to NCCL over that library. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "plugin/config/log.h"
#include "plugin/entry/border.h"
#include "plugin/entry/net_wire.h"
#include "plugin/transport/nccl_net/collnet_wire.h"

namespace riffle::entry {

// The library's, under NCCL's table of this version; of version 0 where it has none.
template <class Table>
const nccl_net::CollNetWire<Table>& passed_collnet() {
  static const auto found = [] {
    const bool is_there = has_wire() && wire_library();
    return is_there ? nccl_net::find_collnet<Table>(*wire_library())
                    : nccl_net::CollNetWire<Table>();
  }();
  return found;
}

// Its init for one communicator; `context` is null in versions that have none. After the first that
// succeeds the table is the library's.
template <class Table>
Status start_passed_collnet(std::uint64_t comm_id, abi::LogFn log, void** context, Table* table) {
  const nccl_net::CollNetWire<Table>& wire = passed_collnet<Table>();
  const std::string said =
      wire_library()->path + " (COLLNET v" + std::to_string(wire.version) + ")";
  auto made = std::make_unique<nccl_net::Context>();
  made->end = wire.end;
  const abi::NcclResult result = wire.start(comm_id, log, &made->theirs);
  if (result != abi::kSuccess) {
    return system_error(said + ": its init returned " + std::to_string(result));
  }
  if (!wire.is_whole()) return system_error(said + ": its table lacks functions");
  static std::once_flag once;
  std::call_once(once, [&] {
    wire.fill(table);
    if constexpr (requires { table->finalize; }) table->finalize = end_wire;
    log_info(said + " is passed on to NCCL, as all-reduces are left to it");
  });
  if (context != nullptr) *context = nccl_net::contexts().add(std::move(made));
  return Status::ok();
}

}  // namespace riffle::entry
