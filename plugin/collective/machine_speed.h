// How fast this machine does what an all-reduce asks of its processor besides the network: measured
// in connect, a few milliseconds, in processor time of the calling thread, so that a busy machine
// does not look like a slow one.
#pragma once

#include <cstdint>

namespace riffle {

struct MachineSpeed {
  // Megabytes of result per second of a sum of two operands, one of which just arrived (it is in
  // the cache) while the other and the result are in memory.
  std::int64_t reduce_mbps = 0;
  // Megabytes per second that one thread sends and receives over TCP: copies, protocol, system
  // calls. 0: could not be measured (no loopback here).
  std::int64_t stack_mbps = 0;
};

MachineSpeed measure_machine();

}  // namespace riffle
