// Written by hand rather than with a logging library: one line goes to NCCL's function or with one
// write(2) to stderr, so there is no buffer, lock, thread-local or registry that a fork could leave
// held or that exit could destroy under a thread still logging. That is all a plugin inside
// somebody else's process may have, and nothing else of such a library would be used.
#include "plugin/config/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "plugin/config/config.h"

namespace riffle {
namespace {

std::atomic<NcclLogger> nccl_logger{nullptr};

// NCCL's numbers (docs/nccl-contract.md).
constexpr unsigned long kSubsystemInit = 1;
constexpr unsigned long kSubsystemNet = 16;
int nccl_level(LogLevel level) {
  switch (level) {
    case LogLevel::kWarn:
      return 2;
    case LogLevel::kInfo:
      return 3;
    case LogLevel::kTrace:
      return 5;
  }
  return 2;
}

const char* prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kWarn:
      return "riffle WARN ";
    case LogLevel::kInfo:
      return "riffle INFO ";
    case LogLevel::kTrace:
      return "riffle TRACE ";
  }
  return "riffle ";
}

void write_to_stderr(LogLevel level, const std::string& line) {
  const int errno_before = errno;
  const std::string text = prefix(level) + line + "\n";
  // A full or closed stderr loses the line: logging must not stop a training job.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  errno = errno_before;
}

}  // namespace

void set_logger(NcclLogger logger) { nccl_logger.store(logger, std::memory_order_release); }

// Warnings always pass: reading the configuration itself may have one to report.
bool is_logged(LogLevel level) {
  if (level == LogLevel::kWarn) return true;
  const std::string& most_detailed = config().log_level;
  return most_detailed == "trace" || (most_detailed == "info" && level == LogLevel::kInfo);
}

void log(LogLevel level, const std::string& line) {
  if (!is_logged(level)) return;
  const NcclLogger logger = nccl_logger.load(std::memory_order_acquire);
  if (logger == nullptr) {
    write_to_stderr(level, line);
    return;
  }
  logger(nccl_level(level), kSubsystemInit | kSubsystemNet, __FILE__, __LINE__, "Riffle: %s",
         line.c_str());
}

}  // namespace riffle
