// NET's frames, next to kFault, whose payload is a sentence.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"

namespace riffle::net {

// The receiver announces a posted receive.
struct PostedFrame {
  static constexpr FrameType kType = FrameType::kPosted;
  std::uint64_t receive = 0;   // its number
  std::uint64_t capacity = 0;  // bytes
  std::uint32_t tag = 0;

  FrameBody encode() const { return pack(receive, capacity, tag); }
  static PostedFrame decode(const FrameBody& body) {
    PostedFrame f;
    unpack(body, f.receive, f.capacity, f.tag);
    return f;
  }
};

// Part of a message, for the receive that it was matched with.
struct MessageFrame {
  static constexpr FrameType kType = FrameType::kMessage;
  std::uint64_t receive = 0;  // its number
  std::uint64_t offset = 0;   // of this part
  std::uint64_t total = 0;    // bytes of the message

  FrameBody encode() const { return pack(receive, offset, total); }
  static MessageFrame decode(const FrameBody& body) {
    MessageFrame f;
    unpack(body, f.receive, f.offset, f.total);
    return f;
  }
};

}  // namespace riffle::net
