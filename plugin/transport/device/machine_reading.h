// This machine, read by hwloc on a thread of its own: off the way of NCCL's calls, which nothing
// here ever holds up. hwloc takes tens of milliseconds, on large machines more. What comes later
// than the patience allows is not used: the machine counts as flat then, as it does without hwloc
// or with one that is no good, and one log line says why.
//
// Any thread. In a forked child, which has no such thread, a machine that was being read is flat.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "topology/base/time.h"
#include "topology/host/machine_read.h"

namespace riffle {

inline constexpr std::uint64_t kMachinePatienceNs = 3 * kSecond / 10;

class MachineReading {
 public:
  // Begins. `cpus`: what the job may use; `nics`: what sysfs says of them.
  MachineReading(const CpuList& cpus, std::vector<Nic> nics, const HwlocChoice& choice = {},
                 std::uint64_t patience_ns = kMachinePatienceNs);

  // Null while it is being read; afterwards always the same one.
  const Machine* get() const;
  // For the end of the process: libraries that hwloc uses are not to end under it.
  void wait() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread's, too
};

}  // namespace riffle
