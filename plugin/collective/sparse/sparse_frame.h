// Part of a message of a sparse exchange.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"

namespace riffle {

struct SparseFrame {
  static constexpr FrameType kType = FrameType::kSparse;
  std::uint64_t segment = 0;  // its number
  std::uint32_t offset = 0;   // of this part
  std::uint32_t total = 0;    // bytes of the message
  std::uint8_t round = 0;
  std::uint8_t step = 0;
  // What the sender has heard of the calls' identities.
  bool is_in_doubt = false;
  std::uint32_t least_digest = 0;
  std::uint32_t largest_digest = 0;

  FrameBody encode() const {
    return pack(segment, offset, total, round, step, static_cast<std::uint8_t>(is_in_doubt),
                least_digest, largest_digest);
  }
  static SparseFrame decode(const FrameBody& body) {
    SparseFrame f;
    std::uint8_t is_in_doubt = 0;
    unpack(body, f.segment, f.offset, f.total, f.round, f.step, is_in_doubt, f.least_digest,
           f.largest_digest);
    f.is_in_doubt = is_in_doubt != 0;
    return f;
  }
};

}  // namespace riffle
