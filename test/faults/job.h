// A job in one process, over TCP on loopback, while a fault is injected: it connects and sums a few
// times. Where losses are survived, nothing works any more or the fault was in a call of its own, a
// node closes its communicator as soon as it has an error, as NCCL does; else none does before all
// are through, so that no connection that breaks tells what an error has to tell.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "test/faults/injection.h"

namespace riffle::faults {

inline constexpr int kTimeoutS = 2;  // RIFFLE_PEER_TIMEOUT
// For any wait of a node; beyond, it is a hang.
inline constexpr auto kLimit = std::chrono::milliseconds(kTimeoutS * 1000 + 2000);

enum class Phase { kConnect, kWork };  // from when on points count

struct Fault {
  Point point = Point::kAllocation;
  Phase phase = Phase::kConnect;
  std::uint64_t kth = 0;  // 0: none, but they are surveyed
  bool lasts = false;     // all behind it fail, too, but not in calls of the nodes' own threads
  int nodes = 8;
};

struct Outcome {
  std::vector<std::string> errors;  // by node; empty: all its sums were right
  std::string broken;               // what must never be: a hang, a wrong sum; empty: nothing
  bool has_struck = false;
  std::uint64_t points = 0;  // that were counted
};

// Settings of the job; the environment counts, too.
void set_up_job();
Outcome run_job(const Fault& fault);

}  // namespace riffle::faults
