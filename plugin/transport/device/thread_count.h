// RIFFLE_THREADS: a number, or auto, for as many progress threads as the network is worth. One
// moves some 10 Gbit/s over TCP, and each further one some 20 more, as it shares that load alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plugin/transport/device/device.h"

namespace riffle {

inline constexpr int kMostThreads = 16;

// For the fastest device whose hardware tells its rate, with one of every two of the job's
// processors at most: NCCL's own threads and the job's need the others. Any thread.
int threads_for(const std::vector<Device>& devices, std::size_t processors);
// `setting`: a number as the knob accepts it, or auto.
int thread_count(const std::string& setting, const std::vector<Device>& devices,
                 std::size_t processors);

}  // namespace riffle
