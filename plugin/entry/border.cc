#include "plugin/entry/border.h"

#include <string>

#include "plugin/config/log.h"

namespace riffle::entry {

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

abi::ResultCode refuse(const char* function, const Status& status) noexcept {
  return refuse(function, status.code(), status.message().c_str());
}

abi::ResultCode refuse(const char* function, Code code, const char* reason) noexcept {
  try {
    log_warn(std::string(function) + ": " + reason);
  } catch (...) {
    // Without memory for a log line the code alone has to do.
  }
  return nccl_code(code);
}

}  // namespace riffle::entry
