// Where progress threads run and staging memory lies: RIFFLE_CPUS, else near the NIC by
// topology/host/core_choice.h, else wherever they are. Nothing here waits or ever fails a
// communicator: what the system refuses ends in a log line.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/base/options.h"
#include "topology/host/core_choice.h"

namespace riffle::placement {

// Notes what the process may use and returns it. First called when the devices are first looked at:
// later NCCL narrows the mask of the threads it calls from to the surroundings of one GPU.
const CpuList& job_mask();

// Begins to read this machine (machine_reading.h). `nics`: what sysfs says; `used`: the interfaces
// of all devices. Only the first call of a process counts.
void begin(std::vector<Nic> nics, std::vector<std::string> used);

// What a setting and a machine make of it; `machine` is asked at most once and only where the
// answer can matter. Nothing where it answers null. Pure but for that.
struct Decision {
  CpuList cpus;         // empty: leave threads alone
  bool is_set = false;  // by RIFFLE_CPUS
  std::string why;
  std::string warning;  // of a setting that makes no sense; empty if none
};
std::optional<Decision> decide(const std::string& setting, const CoreRequest& request,
                               const std::function<const Machine*()>& machine);

// What thread `index` of the pool is to run on; empty: leave it alone. Nothing while that is not
// known. The first decision is logged.
std::optional<CpuList> cpus_of_thread(int index, const ThreadOptions& options);

// Moves the calling progress thread; logs where the system refuses.
void move_this_thread(const CpuList& cpus);

// For page-aligned memory that was not touched yet: it will lie where the NICs' threads run, by
// choose_memory_node. Does nothing while the machine is not known.
void keep_near_nics(void* data, std::size_t bytes);

}  // namespace riffle::placement
