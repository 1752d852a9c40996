#include "plugin/config/fault_log.h"

#include <atomic>
#include <chrono>

#include "plugin/config/log.h"

namespace riffle {
namespace {

std::atomic<std::int64_t> last_fault_ns{0};  // 0: none yet

}  // namespace

void log_fault(const std::string& line, bool is_verdict) {
  const std::int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::steady_clock::now().time_since_epoch())
                                  .count();
  const std::int64_t before_ns = last_fault_ns.exchange(now_ns, std::memory_order_relaxed);
  const bool is_first =
      is_verdict || before_ns == 0 || now_ns - before_ns > static_cast<std::int64_t>(kIncidentNs);
  log(is_first ? LogLevel::kWarn : LogLevel::kInfo, is_first ? line : "also: " + line);
}

void end_incident() { last_fault_ns.store(0, std::memory_order_relaxed); }

}  // namespace riffle
