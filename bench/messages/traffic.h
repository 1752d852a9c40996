// What both loops of riffle_message_bench move, and what it took.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>

namespace riffle::bench {

struct Traffic {
  std::size_t bytes = 0;   // payload of a message
  std::size_t frames = 0;  // messages in all, to all peers in turn
  std::size_t ahead = 64;  // of the mesh: that may wait for one peer at once
};

// Processor time of the thread that sends and of the one that receives, the kernel's part included.
struct Use {
  double send_ns = 0, receive_ns = 0;
  double both_ns() const { return send_ns + receive_ns; }
};

inline double thread_ns() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

}  // namespace riffle::bench
