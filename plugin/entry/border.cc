#include "plugin/entry/border.h"

#include <atomic>
#include <string>

#include "plugin/config/config.h"
#include "plugin/config/log.h"

namespace riffle::entry {

void start_log(abi::LogFn log) noexcept {
  set_logger(log);
  static std::atomic<bool> has_file{false};
  try {
    if (!has_file.exchange(true)) {
      set_log_file(config().log_file, static_cast<std::uint64_t>(config().log_file_bytes));
    }
  } catch (...) {
    // Without memory for a file name the lines go to NCCL's logger alone.
  }
}

abi::ResultCode nccl_code(Code code) {
  switch (code) {
    case Code::kOk:
      return abi::kSuccess;
    case Code::kInvalidArgument:
      return abi::kInvalidArgument;
    case Code::kSystem:
      return abi::kSystemError;
    case Code::kRemote:
    case Code::kTimeout:
      return abi::kRemoteError;
    case Code::kInternal:
      return abi::kInternalError;
  }
  return abi::kInternalError;
}

namespace {

abi::ResultCode log_and_code(LogLevel level, const char* function, Code code,
                             const char* reason) noexcept {
  try {
    log(level, std::string(function) + ": " + reason);
  } catch (...) {
    // Without memory for a log line the code alone has to do.
  }
  return nccl_code(code);
}

}  // namespace

abi::ResultCode refuse(const char* function, const Status& status) noexcept {
  return refuse(function, status.code(), status.message().c_str());
}

abi::ResultCode refuse(const char* function, Code code, const char* reason) noexcept {
  return log_and_code(LogLevel::kWarn, function, code, reason);
}

abi::ResultCode refuse_transfer(const char* function, const Status& status) noexcept {
  const bool is_known = status.code() == Code::kRemote || status.code() == Code::kTimeout;
  return log_and_code(is_known ? LogLevel::kInfo : LogLevel::kWarn, function, status.code(),
                      status.message().c_str());
}

}  // namespace riffle::entry
