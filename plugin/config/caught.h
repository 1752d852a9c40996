// What a progress thread makes of an exception: a Status of code kInternal, "this node's own work
// has failed", which is no loss of a peer (frame_sink.h).
#pragma once

#include <utility>

#include "topology/base/status.h"

namespace riffle {

// In a catch block: what was thrown. Needs no memory where there is none.
Status caught() noexcept;

// A warning, if there is memory for one: "what: why".
void log_caught(const char* what, const Status& why) noexcept;

// Runs `f`; what it throws is given to `failed`, which may throw.
template <class F, class Failed>
void catching(F&& f, Failed&& failed) {
  try {
    f();
    return;
  } catch (...) {
    failed(caught());
  }
}

}  // namespace riffle
