// PROFILER: tells identities (identity/identity.h) what NCCL announces. Where they are not needed
// no event is asked for (mask 0), which costs nothing.
//
// Events of CollNet's ProxyOps exist from NCCL 2.27 on, which takes table v4 or later; older tables
// ask for nothing. Handles are numbers (identity_book.h) and ProxyOps get none: NCCL 2.30 stops
// them long after their collective.
#include "plugin/abi/profiler.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "plugin/abi/constants.h"
#include "plugin/config/log.h"
#include "plugin/entry/border.h"
#include "plugin/entry/options.h"
#include "plugin/identity/identity.h"

namespace riffle::entry::profiler {
namespace {

void nothing(void** context, int* activation_mask) {
  if (context != nullptr) *context = nullptr;
  if (activation_mask != nullptr) *activation_mask = 0;
}

// The handle of ProxyCtrl events, the only ones whose states matter.
void* control_handle() {
  static char any;
  return &any;
}

abi::NcclResult start(void** context, int* activation_mask,
                      const identity::CommEvents::About& about) {
  nothing(context, activation_mask);
  return guard("PROFILER init", [&] {
    if (context == nullptr || activation_mask == nullptr || !options().identity.is_wanted) {
      return Status::ok();
    }
    *context = identity::book().begin_communicator(about, activation_mask);
    return Status::ok();
  });
}

// v1 to v3: NCCL 2.23 to 2.26.
abi::NcclResult init(void** context, int* activation_mask) {
  nothing(context, activation_mask);
  return guard("PROFILER init", [&] {
    static std::atomic<bool> was_said{false};
    if (options().identity.is_wanted && !was_said.exchange(true)) {
      log_info(
          "profiler: this NCCL has no events of CollNet's operations (2.27 and later do), so it "
          "stays unknown which buffers all-reduce calls belong to");
    }
    return Status::ok();
  });
}

abi::NcclResult init(void** context, int* activation_mask, const char*, std::uint64_t comm_id,
                     int nodes, int ranks, int, abi::LogFn log) {
  start_log(log);
  return start(context, activation_mask, {comm_id, ranks, nodes});
}

abi::NcclResult init(void** context, std::uint64_t comm_id, int* activation_mask, const char*,
                     int nodes, int ranks, int, abi::LogFn log) {
  start_log(log);
  return start(context, activation_mask, {comm_id, ranks, nodes});
}

template <class Coll>
identity::CollStart coll_start(const Coll& coll) {
  identity::CollStart start;
  start.sequence = coll.seqNumber;
  start.function = coll.func;
  start.algorithm = coll.algo;
  start.datatype = coll.datatype;
  start.send = coll.sendBuff;
  start.recv = coll.recvBuff;
  start.count = coll.count;
  return start;
}

// v4 on. The type of an event tells which member of the union is meant.
template <class Event>
void take_event(void* context, void** handle, const Event& event) {
  identity::IdentityBook& book = identity::book();
  switch (event.type) {
    case abi::kProfileColl:
      *handle = book.coll_started(context, event.parentObj, coll_start(event.coll));
      break;
    case abi::kProfileProxyOp:
      book.proxy_op_started(identity::this_thread(), context,
                            {event.parentObj, event.proxyOp.channelId, event.proxyOp.peer,
                             event.proxyOp.nSteps, event.proxyOp.chunkSize});
      break;
    case abi::kProfileProxyCtrl:
      *handle = control_handle();
      break;
    default:
      if constexpr (requires { event.groupApi; }) {
        if (event.type == abi::kProfileCollApi) {
          *handle = book.api_started(context, event.collApi.graphCaptured);
        } else if (event.type == abi::kProfileGroupApi && event.groupApi.graphCaptured) {
          (void)book.api_started(context, true);
        }
      }
  }
}

template <class Event>
abi::NcclResult start_event(void* context, void** handle, Event* event) {
  if (handle != nullptr) *handle = nullptr;
  if constexpr (requires { event->coll.nChannels; }) {
    if (handle == nullptr || event == nullptr) return abi::kSuccess;
    return guard("PROFILER startEvent", [&] {
      take_event(context, handle, std::as_const(*event));
      return Status::ok();
    });
  }
  return abi::kSuccess;
}

abi::NcclResult stop_event(void*) { return abi::kSuccess; }

template <class State>
abi::NcclResult record_event_state(void* handle, int state, State*) {
  if (handle != control_handle() || state != abi::kProxyCtrlSleep) return abi::kSuccess;
  return guard("PROFILER recordEventState", [] {
    identity::book().slept(identity::this_thread());
    return Status::ok();
  });
}

abi::NcclResult finalize(void* context) {
  return guard("PROFILER finalize", [&] {
    identity::book().end_communicator(context);
    return Status::ok();
  });
}

template <class Table>
constexpr Table make_table() {
  Table table{};
  table.name = kPluginName;
  table.init = init;
  table.startEvent = start_event;
  table.stopEvent = stop_event;
  table.recordEventState = record_event_state;
  table.finalize = finalize;
  return table;
}

}  // namespace
}  // namespace riffle::entry::profiler

#define RIFFLE_PROFILER(version)                                         \
  RIFFLE_TABLE riffle::abi::ProfilerV##version ncclProfiler_v##version = \
      riffle::entry::profiler::make_table<riffle::abi::ProfilerV##version>();
RIFFLE_PROFILER(1)
RIFFLE_PROFILER(2)
RIFFLE_PROFILER(3)
RIFFLE_PROFILER(4)
RIFFLE_PROFILER(5)
RIFFLE_PROFILER(6)
