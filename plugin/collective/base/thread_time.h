// How long a thread has run or waited for a processor. Where both together are most of the time, it
// is the processor and not the network that sets the pace.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace riffle {

// Of a thread of this process, in nanoseconds since it began (/proc/self/task/<thread>/schedstat:
// run, and ready to); 0: unknown. Any thread.
std::uint64_t thread_wanted_ns(pid_t thread);

}  // namespace riffle
