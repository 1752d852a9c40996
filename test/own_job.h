// A communicator id that no other process has. Tests run side by side, with other knobs, and
// processes of one id have to agree on theirs (plugin/collective/base/agreement.h).
#pragma once

#include <unistd.h>

#include <cstdint>

namespace riffle::testing {

inline std::uint64_t own_job() { return static_cast<std::uint64_t>(::getpid()); }
// The same for the processes that a test forks.
inline std::uint64_t forked_job() { return static_cast<std::uint64_t>(::getppid()); }

}  // namespace riffle::testing
