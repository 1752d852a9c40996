// COLLNET as the library's own that RIFFLE_NET names (SHARP's, for one), where all-reduces are left
// to NCCL over that library (RIFFLE_COLLNET=auto). Any thread.
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

// Its init for one communicator; `context` is null in versions that have none. A library that
// declines is no failure: NCCL goes on without COLLNET.
//
// The first that succeeds makes the exported table the library's, which is not too late: NCCL reads
// name and init before, and copies or uses the others after it (every release from 2.12 to 2.30).
template <class Table>
abi::NcclResult start_passed_collnet(std::uint64_t comm_id, abi::LogFn log, void** context,
                                     Table* table) {
  const nccl_net::CollNetWire<Table>& wire = passed_collnet<Table>();
  const std::string said =
      wire_library()->path + " (COLLNET v" + std::to_string(wire.version) + ")";
  void* theirs = nullptr;
  if (const abi::NcclResult result = wire.start(comm_id, log, &theirs); result != abi::kSuccess) {
    log_info(said + " declines: its init returned " + std::to_string(result));
    return result;
  }
  const auto end = [](nccl_net::Context* c) {
    (void)c->end(c->theirs);
    delete c;
  };
  std::unique_ptr<nccl_net::Context, decltype(end)> made(
      new nccl_net::Context{.theirs = theirs, .end = wire.end, .ours = {}}, end);
  if (const std::string missing = wire.missing(); !missing.empty()) {
    log_warn(said + ": its table lacks " + missing);
    return abi::kSystemError;
  }
  static std::once_flag once;
  std::call_once(once, [&] {
    wire.fill(table);
    if constexpr (requires { table->finalize; }) table->finalize = end_wire;
    log_info(said + " is passed on to NCCL, as all-reduces are left to it");
  });
  if (context != nullptr) {
    *context = nccl_net::contexts().add(std::unique_ptr<nccl_net::Context>(made.release()));
  } else {
    delete made.release();  // those versions are never finalized
  }
  return abi::kSuccess;
}

}  // namespace riffle::entry
