// What the knobs say about collective operations, for one communicator.
#pragma once

#include <cstddef>

#include "plugin/collective/base/sync_mode.h"
#include "plugin/collective/connect/connect_options.h"
#include "plugin/collective/session.h"
#include "plugin/telemetry/recorder.h"

namespace riffle {

struct CollectiveOptions {
  // But for what a communicator adds: counters, the background thread, the sparse mode.
  SessionOptions session;
  ConnectOptions connect;
  RecordOptions record;
  std::size_t keep_bytes = 0;  // for copies of inputs (kept_inputs.h); 0: none are made
};

}  // namespace riffle
