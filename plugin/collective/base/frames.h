// What takes a frame, and what waits for one to leave.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame_sink.h"

namespace riffle {

// A part of a mesh owner's FrameSink: takes frames of some types, and hears when its own have left.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // As in FrameSink.
  virtual Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) = 0;
  virtual void arrived(int peer, const FrameHeader& header, std::byte* payload) = 0;
  virtual void sent(int peer, std::uint64_t cookie) = 0;
};

// Cookies: the highest bits say which part a frame belongs to. The engine's have none of them.
inline constexpr std::uint64_t kControlCookie = 1ull << 62;  // control_channel.h
inline constexpr std::uint64_t kProbeCookie = 1ull << 61;    // prober.h
inline constexpr std::uint64_t kTermCookie = 1ull << 60;     // member_mesh.h; beside another's
inline constexpr std::uint64_t kSparseCookie = 1ull << 59;   // sparse_runner.h
// Of frames whose leaving concerns no handler.
inline constexpr std::uint64_t kNoCookie = ~0ull;

// A table by frame type has so many places.
inline constexpr std::size_t kFrameTypes = static_cast<std::size_t>(kLastFrameType) + 1;

}  // namespace riffle
