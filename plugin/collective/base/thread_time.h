// How long the calling thread has run or waited for a processor. Where both together are most of
// the time, it is the processor and not the network that sets the pace.
#pragma once

#include <cstdint>

namespace riffle {

// Nanoseconds since the thread began (/proc/thread-self/schedstat: run, and ready to); 0: unknown.
std::uint64_t thread_wanted_ns();

}  // namespace riffle
