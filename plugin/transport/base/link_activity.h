// What a mesh or a link tells of one peer, and a mesh of others' traffic beside its own, for
// measuring (topology/probe/passive.h).
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"

namespace riffle {

// What happened on one link since it opened.
struct LinkActivity {
  std::uint64_t out_bytes = 0;  // delivered, not only queued
  std::uint64_t in_bytes = 0;
  std::uint64_t busy_ns = 0;  // the network had something to deliver and had not delivered it
  RateHints of_peer;          // in its latest frame
};

// What the node's other communicators, and NET, have sent and received over the mesh's NICs.
struct NicBytes {
  std::uint64_t out = 0, in = 0;
  std::uint64_t sum() const { return out + in; }
};

}  // namespace riffle
