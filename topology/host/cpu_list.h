// Sets of CPUs (hardware threads, by the kernel's numbers), written as the kernel writes them:
// "0-3,8,10-11". Plain data, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

inline constexpr int kMaxCpus = 8192;  // CPU numbers are 0..kMaxCpus-1, as in NR_CPUS of Linux

using CpuList = std::vector<int>;  // ascending, each once

// Spaces and a final line end are allowed, an empty text is the empty set. On error the message
// names the part at fault and what is accepted.
Result<CpuList> parse_cpu_list(std::string_view text);
std::string to_text(const CpuList& cpus);  // "0-3,8"; "none" if empty

bool contains(const CpuList& cpus, int cpu);
CpuList intersection(const CpuList& a, const CpuList& b);

// The kernel's bit mask of 32-bit words, the highest first: "00000003,ffffffff".
std::string to_mask(const CpuList& cpus);

}  // namespace riffle
