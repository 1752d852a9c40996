// Which calls an engine traces, and where to (call_trace.h).
#pragma once

#include <cstdint>

#include "plugin/telemetry/span_log.h"

namespace riffle {

struct TraceOptions {
  SpanLog* log = nullptr;   // null: none; must outlive the engine
  std::uint32_t every = 1;  // all-reduces of which one is traced, the first; at least 1
  std::uint32_t term = 0;   // of the survivors (collective/elastic)
};

}  // namespace riffle
