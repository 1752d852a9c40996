// What every file of the record and of the trace begins with: which process wrote it. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/telemetry/json_line.h"

namespace riffle {

// The time of lines: seconds since 1970, with milliseconds, as a JSON number.
std::string line_time();
// "process": version, host, process, Slurm job.
std::string process_line();
// 16 hexadecimal digits: how lines name communicators and digests.
std::string hex16(std::uint64_t value);
// "hosts", by rank; of very many the first.
void add_hosts(JsonLine& line, const std::vector<std::string>& hosts);

}  // namespace riffle
