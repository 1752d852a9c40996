#include "plugin/telemetry/process_line.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "plugin/config/file_pattern.h"
#include "plugin/version.h"
#include "topology/base/printed.h"

namespace riffle {

// The line's own number format has too few digits.
std::string line_time() {
  using namespace std::chrono;
  const std::int64_t ms =
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  return printed("%lld.%03lld", static_cast<long long>(ms / 1000),
                 static_cast<long long>(ms % 1000));
}

std::string process_line() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  JsonLine line;
  line.add("type", "process").raw("t", line_time()).add("riffle", kVersion);
  line.add("host", host.data()).add("pid", std::int64_t{getpid()});
  const std::string job = slurm_job_id();
  if (!job.empty()) line.add("slurm_job_id", job);
  return line.take();
}

std::string hex16(std::uint64_t value) {
  return printed("%016llx", static_cast<unsigned long long>(value));
}

void add_hosts(JsonLine& line, const std::vector<std::string>& hosts) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  line.open("hosts", '[');
  for (const std::string& host : hosts) {
    if (line.size() < kMaxBytes) line.add("", host);
  }
  line.close(']');
}

}  // namespace riffle
