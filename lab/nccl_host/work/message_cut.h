// How NCCL cuts a send or receive between nodes over channels and chunks (its enqueue.cc,
// addP2pToPlan and ncclP2pPartBounds, Simple protocol) and on which channel it begins.
#pragma once

#include <cstddef>

#include "lab/nccl_host/work/schedule.h"

namespace riffle::host {

inline constexpr std::size_t kMessageStepBytes = 128 << 10;  // NCCL_P2P_NET_CHUNKSIZE

struct MessageCut {
  int channels = 1;
  std::size_t part_bytes = 0;      // of every channel but the last
  std::size_t chunk_bytes = 0;     // of one NET message at most
  std::size_t capacity_bytes = 0;  // that a receive allows for
};

MessageCut cut_message(std::size_t bytes, const Layout& layout);

// The largest power of two within the communicator's channels.
int message_channels(int channels);

// First channel of messages to the rank that is `distance` further on (or from that far behind).
int message_channel(int distance, const Layout& layout);

}  // namespace riffle::host
