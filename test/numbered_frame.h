// A frame for tests of what carries frames: a number and two more fields that must come back.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"

namespace riffle {

struct NumberedFrame {
  static constexpr FrameType kType = FrameType::kData;
  std::uint64_t number = 0;
  std::uint64_t large = 0;
  std::uint32_t key = 0;

  FrameBody encode() const { return pack(number, large, key); }
  static NumberedFrame decode(const FrameBody& body) {
    NumberedFrame f;
    unpack(body, f.number, f.large, f.key);
    return f;
  }
};

inline FrameHeader numbered(std::uint64_t number, std::size_t length = 0) {
  NumberedFrame frame;
  frame.number = number;
  return header_of(frame, length);
}
inline std::uint64_t number_of(const FrameHeader& header) {
  return frame_of<NumberedFrame>(header).number;
}

}  // namespace riffle
