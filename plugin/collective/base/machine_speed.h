// How fast this machine does what an all-reduce asks of its processor besides the network: measured
// in connect, a few milliseconds, in processor time of the calling thread, so that a busy machine
// does not look like a slow one. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle {

struct MachineSpeed {
  // Megabytes of result per second of a sum of two operands, one of which just arrived (it is in
  // the cache) while the other and the result are in memory.
  std::int64_t reduce_mbps = 0;
  // Megabytes per second that one thread sends and receives over TCP: copies, protocol, system
  // calls. 0: could not be measured (no loopback here).
  std::int64_t stack_mbps = 0;
  // Nanoseconds of a thread for a message that it sends or receives over TCP, beside its bytes,
  // each in a system call of its own. 0: as above.
  std::int64_t message_ns = 0;
};

MachineSpeed measure_machine();

// Of this process: the best of its first three measurements, as what disturbs one makes it slower;
// from then on without measuring.
MachineSpeed machine_speed();

// What the planner reckons a message to cost (PlanOptions::message_ns), by the node for which it is
// most: one of a few steps, so that what disturbs a measurement changes no plan. That of the
// planner where a node does not know.
std::int64_t message_price_ns(const std::vector<MachineSpeed>& nodes);

// A sum of two operands reads one from memory and writes the result there. Each further operand has
// just arrived, is in the cache, and costs this factor less. Fitted to what riffle_decision_bench
// measures on one Xeon; a node's own operand counts as in memory on all levels, though from the
// second on it was just written.
inline constexpr double kInCache = 6;

// How long an all-reduce keeps the processor of a node busy, one thread, whatever the network.
struct ProcessorTime {
  double stack_us = 0;   // TCP: what goes out and what comes in
  double reduce_us = 0;  // adding up, of the node that it takes longest
};
// Precondition: both speeds are known.
ProcessorTime processor_time(const PlanSet& plans, std::uint64_t bytes, const MachineSpeed& speed);

// Which machine this is, so that nodes that share one (containers, an emulated cluster) can be told
// from nodes that do not, and how many processors it has. Which of them this process may use is
// left out: whether nodes confined to few share these with others is not told.
struct MachineShare {
  std::string machine;  // the kernel's boot id; empty: unknown
  std::int64_t processors = 0;
};
MachineShare share_of_machine();

// How many threads there are per processor, where it is worst, and at least 1, if the process of
// each node keeps two of them busy (NCCL's progress thread and ours).
std::int64_t crowding(const std::vector<MachineShare>& nodes);

}  // namespace riffle
