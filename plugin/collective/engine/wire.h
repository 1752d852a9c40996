// The engine's frames.
#pragma once

#include <cstdint>

#include "plugin/collective/engine/operation.h"
#include "plugin/transport/base/frame.h"

namespace riffle {

// The level of reduce-scatter and all-gather, whose one group no plan contains.
inline constexpr int kBlocksLevel = 255;

// The low bits of a generation's number, enough to tell the few that live at one time apart.
inline constexpr std::uint64_t kGenerationMask = 15;

// What a chunk's frames say of its operation and plan: nodes that disagree find out by it.
inline std::uint16_t call_code(const Operation& o, std::uint64_t generation) {
  return static_cast<std::uint16_t>(static_cast<int>(o.type) | static_cast<int>(o.op) << 4 |
                                    static_cast<int>(o.collective) << 8 |
                                    static_cast<int>(generation & kGenerationMask) << 12);
}

// A partial or final sum of one fragment of a chunk.
struct DataFrame {
  static constexpr FrameType kType = FrameType::kData;
  std::uint64_t chunk = 0;   // its number
  std::uint64_t offset = 0;  // first element, within the chunk
  std::uint64_t total = 0;   // elements of the chunk
  int level = 0;             // 0 to 255
  int group = 0;             // index within the level
  bool is_final = false;
  std::uint16_t step_class = 0;  // 0 for an exact sum, else 1 + the step of the relaxed groups
  std::uint16_t call = 0;        // call_code()

  std::uint64_t generation_bits() const { return call >> 12; }

  FrameBody encode() const {
    return pack(chunk, offset, total,
                static_cast<std::uint32_t>(level) << 24 | (is_final ? kFinalBit : 0) |
                    static_cast<std::uint32_t>(group),
                step_class, call);
  }
  static DataFrame decode(const FrameBody& body) {
    DataFrame f;
    std::uint32_t where = 0;
    unpack(body, f.chunk, f.offset, f.total, where, f.step_class, f.call);
    f.level = static_cast<int>(where >> 24);
    f.is_final = (where & kFinalBit) != 0;
    f.group = static_cast<int>(where & (kFinalBit - 1));
    return f;
  }

 private:
  static constexpr std::uint32_t kFinalBit = 1u << 23;
};

// The receiver of partial sums has room for more of them.
struct CreditFrame {
  static constexpr FrameType kType = FrameType::kCredit;
  std::uint64_t generation = 0;  // its whole number
  std::uint16_t level = 0;
  std::uint16_t credits = 0;

  FrameBody encode() const { return pack(generation, level, credits); }
  static CreditFrame decode(const FrameBody& body) {
    CreditFrame f;
    unpack(body, f.generation, f.level, f.credits);
    return f;
  }
};

// Asks, or tells, how many elements of a call are valid (lengths.h).
struct LengthFrame {
  static constexpr FrameType kType = FrameType::kLength;
  enum Kind : std::uint8_t { kQuestion = 0, kAnswer = 1 };
  std::uint64_t chunk = 0;     // the call's first
  std::uint64_t elements = 0;  // of an answer; Operation::kUnknown: not known there either
  std::uint8_t kind = kQuestion;

  FrameBody encode() const { return pack(chunk, elements, kind); }
  static LengthFrame decode(const FrameBody& body) {
    LengthFrame f;
    unpack(body, f.chunk, f.elements, f.kind);
    return f;
  }
};

}  // namespace riffle
