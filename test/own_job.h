// A communicator id that no other process has. Tests run side by side, with other knobs, and
// processes of one id have to agree on theirs (plugin/collective/base/agreement.h).
#pragma once

#include <unistd.h>

#include <cstdint>

namespace riffle::testing {

inline std::uint64_t own_job() { return static_cast<std::uint64_t>(::getpid()); }

}  // namespace riffle::testing
