// What two nodes tell each other, over Riffle's TCP, of the library's connections between them.
// Counts are of messages since the connection began, so a frame that overtakes another does no
// harm.
#pragma once

#include <cstdint>

#include "plugin/transport/base/frame.h"

namespace riffle::nccl_net {

struct LibraryFrame {
  static constexpr FrameType kType = FrameType::kLibrary;
  enum Kind : std::uint8_t {
    kHandle = 1,  // payload: the library's handle to connect to, then what the library calls itself
    kPosted = 2,  // so many receives were posted: as many messages may be sent
    kSent = 3,    // so many messages were sent: to a peer that may be asleep
    kEnd = 4,     // the sender closes; so many messages were sent in all
    kEnded = 5,   // answer: all of those are in; so many were sent the other way, in all
    kFailed = 6,  // the library failed the sender; payload: a sentence
    kCalls = 7,   // the sender has begun to connect: accept need not wait
  };
  std::uint8_t kind = 0;
  std::uint64_t count = 0;

  FrameBody encode() const { return pack(kind, count); }
  static LibraryFrame decode(const FrameBody& body) {
    LibraryFrame f;
    unpack(body, f.kind, f.count);
    return f;
  }
};

inline constexpr std::size_t kLibraryHandleBytes = 128;  // NCCL_NET_HANDLE_MAXSIZE
inline constexpr std::size_t kMostLibraryText = 1024;    // bytes of a name or sentence

}  // namespace riffle::nccl_net
