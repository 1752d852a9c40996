// Log lines: one per decision, nothing per message. They go to NCCL's own logger once a plugin
// table was initialised with one, to stderr before; and to RIFFLE_LOG_FILE if it is set. Messages
// are formatted by fmt, and carry the file and line of the call. Any thread; nothing here holds a
// lock over a fork, or is destroyed while the process exits.
#pragma once

// For checked formats and packed arguments alone, which need no code of fmt's: that is in log.cc,
// once (it takes a compiler three seconds).
#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <type_traits>

namespace riffle {

enum class LogLevel { kWarn, kInfo, kTrace };

// The function type that NCCL hands to every `init`; null returns to stderr.
using NcclLogger = void (*)(int level, unsigned long subsystems, const char* file, int line,
                            const char* format, ...);
void set_logger(NcclLogger logger);

// From now on lines go to this file, too: RIFFLE_LOG_FILE (file_pattern.h) if it is not empty. At
// `bytes` FILE.log becomes FILE.1.log and a new one begins; one older file is kept. Where the file
// cannot be written there is one warning, and the lines go where they went before. A forked child
// does not write into its parent's file.
void set_log_file(const std::string& pattern, std::uint64_t bytes);

// A format with the place it stands at.
template <class... Arguments>
struct LogFormat {
  template <class Text>
  FMT_CONSTEVAL LogFormat(const Text& text,  // NOLINT(google-explicit-constructor)
                          const char* file_called = __builtin_FILE(),
                          int line_called = __builtin_LINE())
      : format(text), file(file_called), line(line_called) {}
  fmt::format_string<Arguments...> format;
  const char* file;
  int line;
};

// A line that is a text already, with the place it stands at; never taken for a format.
struct LogText {
  LogText(const std::string& line_text,  // NOLINT(google-explicit-constructor)
          const char* file_called = __builtin_FILE(), int line_called = __builtin_LINE())
      : text(line_text), file(file_called), line(line_called) {}
  const std::string& text;
  const char* file;
  int line;
};

// The most detailed lines that pass (RIFFLE_LOG), set whenever the configuration is read; kInfo
// until then. Kept here, as asking for the configuration may mean to read it, and a child of a fork
// in that moment would wait for ever.
void set_log_level(LogLevel most_detailed);
bool is_logged(LogLevel level);

// The same with the level and the place as arguments.
void log(LogLevel level, const std::string& text, const char* file = __builtin_FILE(),
         int line = __builtin_LINE());

namespace detail {
void log_formatted(LogLevel level, fmt::string_view format, fmt::format_args arguments,
                   const char* file, int line);

template <class... Arguments>
void log_formatted(LogLevel level, const LogFormat<Arguments...>& format,
                   const Arguments&... arguments) {
  if (!is_logged(level)) return;
  log_formatted(level, format.format, fmt::make_format_args(arguments...), format.file,
                format.line);
}
}  // namespace detail

template <class... Arguments>
void log_warn(LogFormat<std::type_identity_t<Arguments>...> format, const Arguments&... arguments) {
  detail::log_formatted<Arguments...>(LogLevel::kWarn, format, arguments...);
}
template <class... Arguments>
void log_info(LogFormat<std::type_identity_t<Arguments>...> format, const Arguments&... arguments) {
  detail::log_formatted<Arguments...>(LogLevel::kInfo, format, arguments...);
}
template <class... Arguments>
void log_trace(LogFormat<std::type_identity_t<Arguments>...> format,
               const Arguments&... arguments) {
  detail::log_formatted<Arguments...>(LogLevel::kTrace, format, arguments...);
}
inline void log_warn(const LogText& line) { log(LogLevel::kWarn, line.text, line.file, line.line); }
inline void log_info(const LogText& line) { log(LogLevel::kInfo, line.text, line.file, line.line); }
inline void log_trace(const LogText& line) {
  log(LogLevel::kTrace, line.text, line.file, line.line);
}

}  // namespace riffle
