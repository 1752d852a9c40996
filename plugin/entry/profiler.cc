// PROFILER: loads, asks for no event (mask 0) and records nothing, so it costs nothing. NCCL may
// still pass null handles to the other calls; they are ignored.
#include "plugin/abi/profiler.h"

#include <cstdint>

#include "plugin/entry/border.h"

namespace riffle::entry::profiler {
namespace {

abi::NcclResult start(void** context, int* activation_mask) {
  if (context != nullptr) *context = nullptr;
  if (activation_mask != nullptr) *activation_mask = 0;
  return abi::kSuccess;
}

abi::NcclResult init(void** context, int* activation_mask) {
  return start(context, activation_mask);
}

abi::NcclResult init(void** context, int* activation_mask, const char*, std::uint64_t, int, int,
                     int, abi::LogFn) {
  return start(context, activation_mask);
}

abi::NcclResult init(void** context, std::uint64_t, int* activation_mask, const char*, int, int,
                     int, abi::LogFn) {
  return start(context, activation_mask);
}

template <class Event>
abi::NcclResult start_event(void*, void** handle, Event*) {
  if (handle != nullptr) *handle = nullptr;
  return abi::kSuccess;
}

abi::NcclResult stop_event(void*) { return abi::kSuccess; }

template <class State>
abi::NcclResult record_event_state(void*, int, State*) {
  return abi::kSuccess;
}

abi::NcclResult finalize(void*) { return abi::kSuccess; }

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
