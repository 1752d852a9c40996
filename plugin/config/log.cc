// An spdlog::logger of our own, apart from spdlog's registry: its sinks are NCCL's function (or one
// write(2) to stderr), which needs no lock, and a file (log_file.h), whose lock fork knows of. It
// is made when the library is loaded and never destroyed, so neither a fork nor a thread that logs
// while the process exits finds it half made or gone.
#include "plugin/config/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>

#include "plugin/config/file_pattern.h"
#include "plugin/config/log_file.h"

namespace riffle {
namespace {

using SpdlogLevel = spdlog::level::level_enum;

std::atomic<NcclLogger> nccl_logger{nullptr};
std::atomic<LogLevel> most_detailed{LogLevel::kInfo};

// NCCL's numbers (docs/nccl-contract.md).
constexpr unsigned long kSubsystemInit = 1;
constexpr unsigned long kSubsystemNet = 16;
int nccl_level(SpdlogLevel level) {
  if (level >= SpdlogLevel::warn) return 2;
  return level == SpdlogLevel::info ? 3 : 5;
}

SpdlogLevel spdlog_level(LogLevel level) {
  if (level == LogLevel::kWarn) return SpdlogLevel::warn;
  return level == LogLevel::kInfo ? SpdlogLevel::info : SpdlogLevel::trace;
}

const char* prefix(SpdlogLevel level) {
  if (level >= SpdlogLevel::warn) return "riffle WARN ";
  return level == SpdlogLevel::info ? "riffle INFO " : "riffle TRACE ";
}

void write_to_stderr(SpdlogLevel level, const std::string& line) {
  const std::string text = prefix(level) + line + "\n";
  // A full or closed stderr loses the line: logging must not stop a training job.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void write_to_nccl(SpdlogLevel level, const std::string& line, const char* file, int source_line) {
  const NcclLogger logger = nccl_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return write_to_stderr(level, line);
  logger(nccl_level(level), kSubsystemInit | kSubsystemNet, file, source_line, "Riffle: %s",
         line.c_str());
}

class NcclSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& m) override {
    write_to_nccl(m.level, std::string(m.payload.data(), m.payload.size()), m.source.filename,
                  m.source.line);
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

class FileSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& m) override {
    if (const Status s = LogFile::instance().write(m); !s) {
      write_to_nccl(SpdlogLevel::warn, "RIFFLE_LOG_FILE ends here: " + s.message(), __FILE__,
                    __LINE__);
    }
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

spdlog::logger* make_logger() {
  LogFile::instance();  // registers with fork
  const auto logger =
      new spdlog::logger("riffle", {std::make_shared<NcclSink>(), std::make_shared<FileSink>()});
  logger->set_level(SpdlogLevel::trace);
  // In place of spdlog's own, which takes a lock that fork does not know of.
  logger->set_error_handler([](const std::string&) {});
  return logger;
}
spdlog::logger& logger() {
  static spdlog::logger* const made = make_logger();
  return *made;
}
// Made when the library is loaded, before there are threads that could log while another forks.
[[maybe_unused]] const spdlog::logger& made_at_load = logger();

}  // namespace

void set_logger(NcclLogger to) { nccl_logger.store(to, std::memory_order_release); }

void set_log_file(const std::string& pattern, std::uint64_t bytes) {
  Result<std::string> path =
      pattern.empty() ? std::string() : file_of_process("RIFFLE_LOG_FILE", pattern, "log");
  const Status status = path ? LogFile::instance().open(*path, bytes) : path.status();
  if (!status) {
    log_warn("RIFFLE_LOG_FILE={}: {}; lines go to NCCL's logger alone", pattern, status.message());
  }
}

void set_log_level(LogLevel level) { most_detailed.store(level, std::memory_order_relaxed); }
bool is_logged(LogLevel level) { return level <= most_detailed.load(std::memory_order_relaxed); }

void log(LogLevel level, const std::string& text, const char* file, int line) {
  if (!is_logged(level)) return;
  const int errno_before = errno;
  // What other nodes say may stand in a line; a terminal must not take it for commands.
  std::string shown = text;
  std::ranges::replace_if(
      shown, [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 0x7f; },
      '?');
  logger().log(spdlog::source_loc{file, line, ""}, spdlog_level(level),
               spdlog::string_view_t(shown));
  errno = errno_before;
}

namespace detail {
void log_formatted(LogLevel level, fmt::string_view format, fmt::format_args arguments,
                   const char* file, int line) {
  log(level, fmt::vformat(format, arguments), file, line);
}
}  // namespace detail

}  // namespace riffle
