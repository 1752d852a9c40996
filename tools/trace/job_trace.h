// What the nodes of one communicator traced (plugin/telemetry/comm_trace.h, or a simulation),
// before their clocks are compared. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/telemetry/span_log.h"

namespace riffle::tools::trace {

struct TraceEvent {
  std::int64_t at_ns = 0;       // on the node's clock
  std::string kind, name, why;  // kind: plan, mode, loss, failed
};

struct NodeTrace {
  bool is_there = false;  // a trace of it was read
  std::string host;
  std::vector<Span> spans;
  std::vector<TraceEvent> events;
  std::uint64_t dropped = 0;  // spans that found no room
  // To be added to its clock to have the time of day, as the node itself saw it.
  std::optional<std::int64_t> time_of_day_offset_ns;
};

struct JobTrace {
  std::string comm;                // of a simulation: empty
  std::uint64_t every = 1;         // all-reduces of which one is traced
  std::uint64_t room_spans = 0;    // of a node, between two looks of its writer
  std::vector<NodeTrace> nodes;    // by rank
  std::vector<std::string> notes;  // human-readable: what is missing or cut off

  int size() const { return static_cast<int>(nodes.size()); }
};

}  // namespace riffle::tools::trace
