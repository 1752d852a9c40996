// Tells, up or down the tree of a term, below which number operations are done.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"

namespace riffle {

struct DoneFrame {
  static constexpr FrameType kType = FrameType::kDone;
  enum Way : std::uint8_t { kUp, kDown };  // of some nodes, of all nodes
  std::uint64_t below = 0;
  std::uint8_t way = kUp;

  FrameBody encode() const { return pack(below, way); }
  static DoneFrame decode(const FrameBody& body) {
    DoneFrame f;
    unpack(body, f.below, f.way);
    return f;
  }
};

}  // namespace riffle
