// Log lines: one per decision, nothing per message. They go to NCCL's own logger once a plugin
// table was initialised with one, to stderr before. Printf-free: build the string first. Any
// thread.
#pragma once

#include <string>

namespace riffle {

enum class LogLevel { kWarn, kInfo, kTrace };

// The function type that NCCL hands to every `init`; null returns to stderr.
using NcclLogger = void (*)(int level, unsigned long subsystems, const char* file, int line,
                            const char* format, ...);
void set_logger(NcclLogger logger);

bool is_logged(LogLevel level);  // where a line takes work to build
void log(LogLevel level, const std::string& line);
inline void log_warn(const std::string& line) { log(LogLevel::kWarn, line); }
inline void log_info(const std::string& line) { log(LogLevel::kInfo, line); }
inline void log_trace(const std::string& line) { log(LogLevel::kTrace, line); }

}  // namespace riffle
